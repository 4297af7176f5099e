"""Sign-in, sign-out, and what every page shares: its headers."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from rest_framework.throttling import SimpleRateThrottle

from apps.rbac.forms import SignInForm
from apps.rbac.models import User

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Nothing inline, nothing from elsewhere: text that slips through the sanitizer still cannot run."""


def render_page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """A page of DocMind: never kept by a cache, and under the content security policy."""
    response = render(request, template, context, status=status)
    harden(response)
    return response


def harden(response: HttpResponseBase) -> None:
    """Add the headers of a page."""
    response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response["Cache-Control"] = "no-store, private"


def signed_in_user(request: HttpRequest) -> User:
    """The user of a page behind `login_required`."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class SignInThrottle(SimpleRateThrottle):
    """The API's sign-in rate, by address, for the form."""

    scope = "sign-in"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": f"page-{self.scope}", "ident": self.get_ident(request)}


class SignInView(LoginView):
    template_name = "rbac/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "label_suffix": ""}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        harden(response)
        return response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if SignInThrottle().allow_request(request, self):  # type: ignore[arg-type]
            return super().post(request, *args, **kwargs)
        form = self.get_form()
        form.errors.clear()
        form.add_error(None, form.error_messages["throttled"])
        response = self.render_to_response(self.get_context_data(form=form))
        response.status_code = 429
        return response


class SignOutView(LogoutView):
    """POST only, so that a link on another site cannot sign anybody out."""
