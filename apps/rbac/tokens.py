"""Tokens of the API: JWT pairs bound to a session row that can be ended, and personal API keys.

Access (24 h) and refresh (7 d) tokens carry the id of their `LoginSession`. Each refresh replaces the refresh token;
one that was already replaced ends the whole session, access tokens included. Session rows are looked up at every
request and cached for SESSION_CACHE_S.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed
from rest_framework_simplejwt.exceptions import ExpiredTokenError, TokenError
from rest_framework_simplejwt.tokens import AccessToken, RefreshToken

from apps.rbac.models import ApiKey, LoginSession, User
from docmind.telemetry import get_logger

logger = get_logger(__name__)

API_KEY_PREFIX = "dm-"
SESSION_CLAIM = "sid"
SESSION_CACHE_S = 5
LAST_USED_STEP = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPair:
    access: str
    refresh: str
    expires_in_s: int


def _invalid(message: str, code: str = "token_not_valid") -> AuthenticationFailed:
    return AuthenticationFailed(message, code=code)


def _issue(user: User, session_key: uuid.UUID) -> tuple[TokenPair, str]:
    """A pair for the session, and the id of its refresh token."""
    refresh = RefreshToken.for_user(user)
    refresh[SESSION_CLAIM] = str(session_key)
    access = refresh.access_token
    pair = TokenPair(access=str(access), refresh=str(refresh), expires_in_s=settings.JWT_ACCESS_HOURS * 3600)
    return pair, str(refresh["jti"])


def start_session(user: User, *, address: str | None = None, user_agent: str = "") -> TokenPair:
    """Sign a user in to the API."""
    key = uuid.uuid4()
    pair, jti = _issue(user, key)
    LoginSession.objects.create(
        key=key,
        user=user,
        refresh_jti=jti,
        expires_at=timezone.now() + timedelta(days=settings.JWT_REFRESH_DAYS),
        address=address,
        user_agent=user_agent[:200],
    )
    return pair


def refresh_session(raw: str) -> TokenPair:
    """Exchange a refresh token for a new pair. A token used twice ends its session. Raises AuthenticationFailed."""
    try:
        token = RefreshToken(raw)  # type: ignore[arg-type]
    except ExpiredTokenError:
        raise _invalid(_("The refresh token has expired. Sign in again."), "token_expired") from None
    except TokenError:
        raise _invalid(_("The refresh token is not valid.")) from None
    session = LoginSession.objects.select_related("user").filter(key=_session_key(token)).first()
    if session is None or session.ended_at is not None or not session.user.is_active:
        raise _invalid(_("This sign-in has ended. Sign in again."))
    pair, jti = _issue(session.user, session.key)
    replaced = LoginSession.objects.filter(pk=session.pk, refresh_jti=token["jti"], ended_at=None).update(
        refresh_jti=jti,
        last_used_at=timezone.now(),
        expires_at=timezone.now() + timedelta(days=settings.JWT_REFRESH_DAYS),
    )
    if not replaced:
        logger.warning("refresh_token_reused", user_id=session.user_id)
        end_session(session.key, reason="refresh token reuse")
        raise _invalid(_("This refresh token was used before; the sign-in has been ended. Sign in again."))
    return pair


def end_session(key: uuid.UUID, *, reason: str) -> None:
    """End one session: its access tokens are refused from the next request on."""
    LoginSession.objects.filter(key=key, ended_at=None).update(ended_at=timezone.now(), ended_reason=reason)
    cache.delete(_cache_name(key))


def end_all_sessions(user: User, *, reason: str) -> None:
    """End every API session of a user (password change, deactivation)."""
    for key in LoginSession.objects.filter(user=user, ended_at=None).values_list("key", flat=True):
        end_session(key, reason=reason)


def verify_access_token(raw: str) -> tuple[User, uuid.UUID]:
    """The user and session of an access token. Raises AuthenticationFailed."""
    try:
        token = AccessToken(raw)  # type: ignore[arg-type]
    except ExpiredTokenError:
        raise _invalid(_("The access token has expired."), "token_expired") from None
    except TokenError:
        raise _invalid(_("The access token is not valid.")) from None
    key = _session_key(token)
    user_id = cache.get(_cache_name(key))
    if user_id is None:
        session = LoginSession.objects.filter(key=key, ended_at=None).values_list("user_id", flat=True).first()
        if session is None:
            raise _invalid(_("This sign-in has ended. Sign in again."))
        user_id = session
        cache.set(_cache_name(key), user_id, SESSION_CACHE_S)
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or str(user.pk) != str(token.get("user_id")):
        raise _invalid(_("This user can no longer sign in."))
    return user, key


def _session_key(token: AccessToken | RefreshToken) -> uuid.UUID:
    try:
        return uuid.UUID(str(token.get(SESSION_CLAIM)))
    except ValueError:
        raise _invalid(_("The token is not valid.")) from None


def _cache_name(key: uuid.UUID) -> str:
    return f"login-session:{key}"


def create_api_key(
    user: User,
    *,
    name: str,
    permission_codes: Iterable[str],
    knowledge_base_ids: Iterable[int] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown this once: only the hash is kept."""
    raw = API_KEY_PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        user=user,
        name=name,
        prefix=raw[:10],
        key_hash=_hash(raw),
        permission_codes=sorted(permission_codes),
        knowledge_base_ids=None if knowledge_base_ids is None else sorted(knowledge_base_ids),
        expires_at=expires_at,
    )
    return key, raw


def verify_api_key(raw: str) -> ApiKey:
    """The key's row with its user. Raises AuthenticationFailed."""
    key = ApiKey.objects.select_related("user").filter(key_hash=_hash(raw)).first()
    now = timezone.now()
    if key is None or key.revoked_at is not None or not key.user.is_active:
        raise _invalid(_("The API key is not valid."))
    if key.expires_at is not None and key.expires_at <= now:
        raise _invalid(_("The API key has expired."), "token_expired")
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_STEP:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key


def _hash(raw: str) -> str:
    """A plain hash is enough: the key is 256 random bits."""
    return hashlib.sha256(raw.encode()).hexdigest()
