"""The 15 permission codes and the three built-in roles (design: Access)."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

PERMISSIONS: Final[dict[str, str]] = {
    "kb:read": gettext_noop("Read knowledge bases"),
    "kb:upload": gettext_noop("Upload documents"),
    "kb:update": gettext_noop("Change documents and knowledge bases"),
    "kb:delete": gettext_noop("Delete documents and knowledge bases"),
    "kb:manage": gettext_noop("Manage all knowledge bases"),
    "chat:ask": gettext_noop("Ask questions"),
    "chat:history": gettext_noop("See own conversations"),
    "memory:read": gettext_noop("Read own memories"),
    "memory:write": gettext_noop("Change own memories"),
    "mcp:execute": gettext_noop("Use MCP tools"),
    "mcp:manage": gettext_noop("Manage MCP tools"),
    "config:read": gettext_noop("Read the configuration"),
    "config:write": gettext_noop("Change the configuration"),
    "user:manage": gettext_noop("Manage users"),
    "role:manage": gettext_noop("Manage roles"),
}

SUPER_ADMIN: Final = "SUPER_ADMIN"
KB_ADMIN: Final = "KB_ADMIN"
USER: Final = "USER"

_USER_CODES = frozenset({"kb:read", "chat:ask", "chat:history", "memory:read", "memory:write", "mcp:execute"})

ROLE_PERMISSIONS: Final[dict[str, frozenset[str]]] = {
    SUPER_ADMIN: frozenset(PERMISSIONS),
    KB_ADMIN: _USER_CODES | {"kb:upload", "kb:update", "kb:delete", "kb:manage", "config:read"},
    USER: _USER_CODES,
}

ROLE_NAMES: Final[dict[str, str]] = {
    SUPER_ADMIN: gettext_noop("Administrator"),
    KB_ADMIN: gettext_noop("Knowledge-base administrator"),
    USER: gettext_noop("User"),
}
