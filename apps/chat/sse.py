"""Server-sent events: events become frames, frames become bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from apps.chat.bus import Frame, RunBus, RunLostError
from apps.chat.pipeline.events import Done, Error, Event
from apps.chat.pipeline.wire import event_name, payload

KEEP_ALIVE_S: Final = 15.0
KEEP_ALIVE: Final = b": keep-alive\n\n"
OPENING: Final = b": stream\n\n"
"""The first bytes, which make a proxy hand the headers on before there is an event."""


def to_frame(run_id: UUID, seq: int, event: Event) -> Frame:
    """An event as a frame; every payload carries the run's id."""
    body = {"runId": str(run_id), **payload(event)}
    return Frame(
        seq=seq,
        name=event_name(event),
        data=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        final=isinstance(event, Done | Error),
    )


def encode(frame: Frame) -> bytes:
    """A frame on the wire. JSON holds no line breaks, so the data is one line."""
    return f"id: {frame.seq}\nevent: {frame.name}\ndata: {frame.data}\n\n".encode()


async def stream_run(
    bus: RunBus, run_id: UUID, *, after: int = 0, keep_alive_s: float = KEEP_ALIVE_S
) -> AsyncGenerator[bytes, None]:
    """The bytes of a run's stream behind frame number `after`, until its end."""
    yield OPENING
    seq = after
    try:
        async with aclosing(bus.subscribe(run_id, after=after, idle_s=keep_alive_s)) as frames:
            async for frame in frames:
                if frame is None:
                    yield KEEP_ALIVE
                else:
                    seq = frame.seq
                    yield encode(frame)
    except RunLostError:
        lost = Error(code="run_lost", message=_("The connection to this answer was lost."), retryable=True)
        yield encode(to_frame(run_id, seq + 1, lost))
