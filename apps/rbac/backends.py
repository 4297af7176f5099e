"""The one authorisation backend behind Django admin, DRF, pages, tools and MCP.

A permission is either one of the 15 codes (`kb:read`) or Django's `app.action_model`, which is mapped to a code.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest

from apps.rbac.models import User
from apps.rbac.permissions import PERMISSIONS

_VIEW, _ADD, _CHANGE, _DELETE = "view", "add", "change", "delete"

_APP_CODES: Final[dict[str, dict[str, str]]] = {
    "kb": {_VIEW: "kb:manage", _ADD: "kb:manage", _CHANGE: "kb:manage", _DELETE: "kb:manage"},
    "aiconfig": {_VIEW: "config:read", _ADD: "config:write", _CHANGE: "config:write", _DELETE: "config:write"},
    "rbac": {_VIEW: "user:manage", _ADD: "user:manage", _CHANGE: "user:manage", _DELETE: "user:manage"},
    "chat": {_VIEW: "user:manage", _ADD: "user:manage", _CHANGE: "user:manage", _DELETE: "user:manage"},
    "memory": {_VIEW: "user:manage", _ADD: "user:manage", _CHANGE: "user:manage", _DELETE: "user:manage"},
    "django_q": {_VIEW: "config:read", _ADD: "config:write", _CHANGE: "config:write", _DELETE: "config:write"},
}
_MODEL_CODES: Final[dict[tuple[str, str], str]] = {
    ("rbac", "role"): "role:manage",
    ("rbac", "permission"): "role:manage",
    ("rbac", "rolepermission"): "role:manage",
    ("rbac", "userrole"): "role:manage",
    ("chat", "mcptool"): "mcp:manage",
}


def required_code(perm: str) -> str | None:
    """The permission code that Django's `app.action_model` asks for; None when nobody may."""
    app_label, _, codename = perm.partition(".")
    action, _, model = codename.partition("_")
    return _MODEL_CODES.get((app_label, model)) or _APP_CODES.get(app_label, {}).get(action)


class RoleBackend(BaseBackend):
    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if username is None or password is None:
            return None
        try:
            user = User.objects.get(username=username)
        except User.DoesNotExist:
            User().set_password(password)  # the same time whether or not the name exists
            return None
        return user if user.check_password(password) and self.user_can_authenticate(user) else None

    def get_user(self, user_id: int) -> User | None:
        user = User.objects.filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None

    @staticmethod
    def user_can_authenticate(user: User) -> bool:
        return user.is_active

    def has_perm(self, user_obj: Any, perm: str, obj: object = None) -> bool:
        if not isinstance(user_obj, get_user_model()):
            return False
        code = perm if perm in PERMISSIONS else required_code(perm)
        return code is not None and code in user_obj.permission_codes()

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        if not isinstance(user_obj, get_user_model()):
            return False
        needed = set(_APP_CODES.get(app_label, {}).values())
        needed |= {code for (app, _model), code in _MODEL_CODES.items() if app == app_label}
        return bool(needed & user_obj.permission_codes())
