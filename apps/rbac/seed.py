"""Permissions and built-in roles: created after migrate, idempotent, never a data migration."""

from __future__ import annotations

from typing import Any

from apps.rbac.models import Permission, Role, RolePermission
from apps.rbac.permissions import PERMISSIONS, ROLE_NAMES, ROLE_PERMISSIONS


def seed_roles(**kwargs: Any) -> None:
    """Make permissions and built-in roles exist; what an administrator changed in a role stays as it is."""
    known = set(Permission.objects.values_list("code", flat=True))
    Permission.objects.bulk_create(
        [Permission(code=code, name=name) for code, name in PERMISSIONS.items() if code not in known],
        ignore_conflicts=True,
    )
    ids = dict(Permission.objects.values_list("code", "id"))
    for code, granted in ROLE_PERMISSIONS.items():
        role, created = Role.objects.get_or_create(code=code, defaults={"name": ROLE_NAMES[code], "is_builtin": True})
        if created:
            RolePermission.objects.bulk_create(
                [RolePermission(role=role, permission_id=ids[granted_code]) for granted_code in sorted(granted)],
                ignore_conflicts=True,
            )
