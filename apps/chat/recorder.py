"""The recorder: folds a run's events into the state of its message row, and writes that state.

The row is the fold of what was streamed: JSON columns hold the very payloads, camelCase keys included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, assert_never

from django.db import transaction
from django.utils import timezone

from apps.chat.models import Message
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
from apps.chat.pipeline.wire import event_name, payload, wire_value


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageState:
    """The columns of qa_message that a run writes, under their names."""

    status: str = Message.Status.STREAMING.value
    content: str = ""
    sources: list[dict[str, Any]] = field(default_factory=list)
    citations: list[dict[str, Any]] = field(default_factory=list)
    agent_trace: list[dict[str, Any]] = field(default_factory=list)
    retrieval_log: dict[str, Any] = field(default_factory=dict)
    confidence_score: float | None = None
    confidence_band: str = ""
    citation_coverage: float | None = None
    invalid_refs: int = 0
    is_fallback: bool = False
    intent: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    response_time_ms: int | None = None
    error_code: str = ""


def fold(state: MessageState, event: Event) -> MessageState:
    """The state after an event."""
    match event:
        case Understanding():
            return replace(_traced(state, event), intent=event.intent)
        case Routing() | Retrieval() | Rerank() | Grader() | ScopeShortCircuit():
            return _traced(state, event)
        case Start():
            return replace(state, model=event.model)
        case Token():
            return replace(state, content=state.content + event.text)
        case Done():
            return _finished(state, event)
        case Error():
            return replace(state, status=Message.Status.FAILED.value, error_code=event.code)
        case _:
            assert_never(event)


def _traced(state: MessageState, event: Event) -> MessageState:
    return replace(state, agent_trace=[*state.agent_trace, {"event": event_name(event), **payload(event)}])


def _finished(state: MessageState, done: Done) -> MessageState:
    status = Message.Status.STOPPED if done.outcome == "stopped" else Message.Status.DONE
    return replace(
        state,
        status=status.value,
        sources=wire_value(done.sources),
        citations=wire_value(done.citations),
        agent_trace=wire_value(done.agent_trace),
        retrieval_log=wire_value(done.retrieval_log),
        confidence_score=done.confidence_score,
        confidence_band=done.confidence_band,
        citation_coverage=done.citation_coverage,
        invalid_refs=done.invalid_refs,
        is_fallback=done.is_fallback,
        intent=done.intent_type,
        input_tokens=done.usage.get("input_tokens"),
        output_tokens=done.usage.get("output_tokens"),
        response_time_ms=done.response_time,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The text of a run that is still streaming."""

    message_id: int
    content: str


@transaction.atomic
def record_progress(progress: Sequence[Progress]) -> None:
    """Write the text so far and a heartbeat, for all runs of a process in one transaction.

    A row that has its final state is left alone, so that a late heartbeat changes nothing.
    """
    now = timezone.now()
    for item in sorted(progress, key=lambda item: item.message_id):
        Message.objects.filter(pk=item.message_id, status=Message.Status.STREAMING).update(
            content=item.content, heartbeat_at=now
        )


def record_final(message_id: int, state: MessageState) -> None:
    """Write the final state. A message that was deleted meanwhile stays deleted."""
    Message.objects.filter(pk=message_id).update(**asdict(state), heartbeat_at=timezone.now())
