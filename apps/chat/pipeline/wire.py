"""The outward shape of events: their names, and payloads with camelCase keys.

Used by the SSE encoder and by the recorder, so that a message's row holds what was streamed.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any, assert_never

from apps.chat.pipeline.events import (
    Done,
    Error,
    Event,
    Grader,
    Rerank,
    Retrieval,
    Routing,
    ScopeShortCircuit,
    Start,
    Token,
    Understanding,
)


def event_name(event: Event) -> str:
    """The event's name on the wire."""
    match event:
        case Understanding():
            return "understanding"
        case Routing():
            return "routing"
        case Retrieval():
            return "retrieval"
        case Rerank():
            return "rerank"
        case Grader():
            return "grader"
        case ScopeShortCircuit():
            return "scope"
        case Start():
            return "start"
        case Token():
            return "token"
        case Done():
            return "done"
        case Error():
            return "error"
        case _:
            assert_never(event)


def payload(event: Event) -> dict[str, Any]:
    """The event's fields as JSON-ready values, without the run's id."""
    return {camel_case(field.name): wire_value(getattr(event, field.name)) for field in dataclasses.fields(event)}


def wire_value(value: Any) -> Any:
    """A value as JSON will hold it: dataclasses and mappings become objects with camelCase keys, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {camel_case(field.name): wire_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {camel_case(str(key)): wire_value(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [wire_value(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


def camel_case(name: str) -> str:
    """`kb_entity_weak` → `kbEntityWeak`; a name without underscores stays as it is."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
