"""Addresses of sign-in and sign-out, and the catalogue of the texts that scripts show."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from apps.rbac.pages import SignInView, SignOutView

urlpatterns: list[URLPattern] = [
    path("sign-in/", SignInView.as_view(), name="sign-in"),
    path("sign-out/", SignOutView.as_view(), name="sign-out"),
    path(
        "script-texts.js",
        cache_control(private=True, no_cache=True)(JavaScriptCatalog.as_view(packages=["apps.rbac"])),
        name="script-texts",
    ),
]
