"""Reading and changing hot configuration."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from apps.aiconfig.models import AiConfig, AiConfigRevision
from apps.aiconfig.snapshot import DECLARATIONS, ConfigSnapshot, build_snapshot
from apps.rbac.models import User
from docmind.errors import PermanentError
from docmind.executor import run_db

REFRESH_S = 0.5
"""Age at which a process reads the table again: a change is in force everywhere within a second."""


class _Held:
    snapshot: ConfigSnapshot | None = None
    taken_at: float = 0.0


def load_config() -> ConfigSnapshot:
    """Read the table now (one query)."""
    snapshot = build_snapshot(dict(AiConfig.objects.values_list("key", "value")))
    _Held.snapshot, _Held.taken_at = snapshot, time.monotonic()
    return snapshot


def current_config() -> ConfigSnapshot:
    """The configuration in force, at most REFRESH_S old. Synchronous code only; see `acurrent_config`."""
    if _Held.snapshot is not None and time.monotonic() - _Held.taken_at < REFRESH_S:
        return _Held.snapshot
    return load_config()


async def acurrent_config() -> ConfigSnapshot:
    """The same for the event loop."""
    if _Held.snapshot is not None and time.monotonic() - _Held.taken_at < REFRESH_S:
        return _Held.snapshot
    return await run_db(load_config)


def forget_config() -> None:
    """Make the next read go to the table (after a change, and between tests)."""
    _Held.snapshot = None


@transaction.atomic
def set_config(key: str, raw: str, *, user: User | None) -> AiConfig:
    """Change one key and record the revision. Raises PermanentError for an unknown key or a value that does not fit."""
    declaration = DECLARATIONS.get(key)
    if declaration is None:
        raise PermanentError(f"There is no configuration key {key!r}.", code="not_found")
    try:
        value = declaration.format(declaration.parse(raw))
    except ValueError as error:
        raise PermanentError(str(error), code="invalid") from None
    row = AiConfig.objects.select_for_update().get(key=key)
    if row.value != value:
        AiConfigRevision.objects.create(config=row, old_value=row.value, new_value=value, changed_by=user)
        row.value = value
        row.save(update_fields=["value", "updated_at"])
        transaction.on_commit(forget_config)
    return row


def seed_config(**kwargs: Any) -> None:
    """Make a row for every declared key and bring its declaration up to date; values stay as they are."""
    rows = {row.key: row for row in AiConfig.objects.all()}
    missing = []
    for declaration in DECLARATIONS.values():
        declared: dict[str, Any] = {
            "value_type": declaration.value_type,
            "category": declaration.category,
            "description": declaration.description,
            "default": declaration.format(declaration.default),
            "minimum": declaration.minimum,
            "maximum": declaration.maximum,
            "choices": list(declaration.choices),
        }
        row = rows.get(declaration.key)
        if row is None:
            missing.append(AiConfig(key=declaration.key, value=declared["default"], **declared))
        elif any(getattr(row, name) != value for name, value in declared.items()):
            AiConfig.objects.filter(pk=row.pk).update(**declared)
    AiConfig.objects.bulk_create(missing, ignore_conflicts=True)
    forget_config()
