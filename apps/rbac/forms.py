"""The sign-in form of the pages."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _


class SignInForm(AuthenticationForm):
    """User name and password. The error does not tell which of the two was wrong."""

    error_messages = {  # noqa: RUF012 - Django's own attribute
        "invalid_login": _("This user name and password do not belong together. Both are case-sensitive."),
        "inactive": _("This account is switched off. Ask an administrator."),
        "throttled": _("Too many attempts. Wait a minute and try again."),
    }
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(
            attrs={"autofocus": True, "autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
