"""What is known about one hot-configuration key, and how its value is read and written as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.utils.translation import gettext as _

Value = int | float | bool | str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDeclaration:
    """What is known about one key: `field_name` is its attribute on ConfigSnapshot."""

    key: str
    field_name: str
    default: Value
    category: str
    description: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]

    @property
    def value_type(self) -> str:
        return type(self.default).__name__

    def parse(self, raw: str) -> Value:
        """The typed value of a stored text. Raises ValueError, with a readable message, when it does not fit."""
        match self.default:
            case bool():
                return self._boolean(raw.strip().lower())
            case int() | float():
                return self._number(raw.strip())
            case _:
                if self.choices and raw not in self.choices:
                    raise ValueError(
                        _("%(key)s must be one of %(choices)s.") % {"key": self.key, "choices": ", ".join(self.choices)}
                    )
                return raw

    def _boolean(self, raw: str) -> bool:
        if raw not in {"true", "false"}:
            raise ValueError(_("%(key)s must be true or false.") % {"key": self.key})
        return raw == "true"

    def _number(self, raw: str) -> int | float:
        kind = int if isinstance(self.default, int) else float
        try:
            number = kind(raw)
        except ValueError:
            asked = _("%(key)s must be a whole number.") if kind is int else _("%(key)s must be a number.")
            raise ValueError(asked % {"key": self.key}) from None
        low = -math.inf if self.minimum is None else self.minimum
        high = math.inf if self.maximum is None else self.maximum
        if not low <= number <= high:
            bounds = {"key": self.key, "low": f"{low:g}", "high": f"{high:g}"}
            raise ValueError(_("%(key)s must lie between %(low)s and %(high)s.") % bounds)
        return number

    def format(self, value: Value) -> str:
        """The text that is stored for a value; `parse` turns it back."""
        return str(value).lower() if isinstance(value, bool) else str(value)
