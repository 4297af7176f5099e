"""Who is calling: a Bearer JWT, a Bearer API key, or a page's session cookie.

`request.auth` is the ApiKey, the id of the JWT's session, or None for a page.

DRF's views use the two authentication classes; plain async views call `authenticate` (in a database thread).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.request import Request

from apps.rbac import tokens
from apps.rbac.models import ApiKey, User


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated user, and the API key where one was used: it narrows what the user may do."""

    user: User
    key: ApiKey | None = None

    def has_code(self, code: str) -> bool:
        """Whether the caller holds a permission code, the API key's limits included."""
        held = self.user.permission_codes()
        return code in held and (self.key is None or code in self.key.permission_codes)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer …` with an access token or an API key."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[User, Any] | None:
        parts = get_authorization_header(request).split()  # type: ignore[arg-type]
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise exceptions.AuthenticationFailed(_("The Authorization header must be “Bearer TOKEN”."))
        raw = parts[1].decode("ascii", errors="replace")
        if raw.startswith(tokens.API_KEY_PREFIX):
            key = tokens.verify_api_key(raw)
            return key.user, key
        return tokens.verify_access_token(raw)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="docmind"'


class PageSessionAuthentication(SessionAuthentication):
    """The session cookie of the pages, with CSRF protection."""


def authenticate(request: HttpRequest) -> Caller:
    """The caller of a plain view. Raises DRF's NotAuthenticated, AuthenticationFailed or PermissionDenied (CSRF)."""
    if found := TokenAuthentication().authenticate(request):
        user, key = found
        return Caller(user=user, key=key if isinstance(key, ApiKey) else None)
    if not isinstance(request.user, User) or not request.user.is_active:
        error = exceptions.NotAuthenticated()
        error.auth_header = 'Bearer realm="docmind"'  # type: ignore[attr-defined]
        raise error
    # The plain request: DRF's own would want to parse the body, for a token that comes in a header.
    PageSessionAuthentication().enforce_csrf(request)  # type: ignore[arg-type]
    return Caller(user=request.user)


def caller_of(request: Request) -> Caller:
    """The caller of a DRF view whose authentication has run."""
    return Caller(user=cast(User, request.user), key=request.auth if isinstance(request.auth, ApiKey) else None)
