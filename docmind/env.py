"""Typed access to environment variables; a bad value stops the process with one clear line.

Used by `docmind.settings` alone. An empty value counts as not set.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The variable's value without surrounding white space."""
    return os.environ.get(name, "").strip() or default


def boolean(name: str, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off."""
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be one of 1, 0, true, false, yes, no, on, off; it is {value!r}.")


def integer(name: str, default: int, *, minimum: int, maximum: int) -> int:
    """A whole number within bounds, both included."""
    value = text(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number; it is {value!r}.") from None
    if not minimum <= number <= maximum:
        raise ImproperlyConfigured(f"{name} must lie between {minimum} and {maximum}; it is {number}.")
    return number


def choice(name: str, default: str, *, among: tuple[str, ...]) -> str:
    """One of a fixed set of words."""
    value = text(name, default).lower()
    if value not in among:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(among)}; it is {value!r}.")
    return value


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list."""
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else list(default)


def path(name: str, default: Path) -> Path:
    """An absolute path, `~` expanded."""
    value = text(name)
    return (Path(value) if value else default).expanduser().resolve()
