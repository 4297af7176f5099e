"""Live progress of documents on the page of their knowledge base.

Django-eventstream carries the events. Their source is the document's row, which is the truth about its ingestion:
while somebody listens to a knowledge base, and only then, each web process that has a listener reads the rows that
are at work, once an interval, and hands on what has changed. It works the same on every database, broker and cache.

Events: `document` with the document as the API shows it, `document-deleted` with {"id"}.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django_eventstream.channelmanager import DefaultChannelManager
from django_eventstream.event import Event
from django_eventstream.views import events, get_listener_manager

from apps.kb.access import resolve_scope
from apps.kb.api.serializers import DocumentSerializer
from apps.kb.models import Document
from apps.rbac.models import User
from docmind.executor import run_db
from docmind.telemetry import get_logger

logger = get_logger(__name__)

INTERVAL_S: Final = 0.7
EVENTS_A_TICK: Final = 8
"""Under the ten that django-eventstream keeps for a listener; the rest follows at the next tick."""
LONGEST_STREAM_S: Final = 600.0
"""Then the browser connects again, and its right to listen is checked again."""
RESTING: Final = (Document.Status.READY, Document.Status.FAILED, Document.Status.CANCELLED)

Signature = tuple[str, float, str, int]


def channel_of(kb_id: int) -> str:
    return f"kb-{kb_id}"


class DocumentChannels(DefaultChannelManager):  # type: ignore[misc]
    """A channel a knowledge base, open to whoever may read it."""

    def can_read_channel(self, user: User | None, channel: str) -> bool:
        kind, _, number = channel.partition("-")
        return user is not None and kind == "kb" and number.isdecimal() and resolve_scope(user).can_read(int(number))

    def is_channel_reliable(self, channel: str) -> bool:
        return False


def progress_stream(request: HttpRequest, kb_id: int) -> HttpResponseBase:
    """The event stream of a knowledge base. The caller has checked that it may be read."""
    request.GET = QueryDict()  # parameters of its own that django-eventstream would take from the address, unchecked
    response: HttpResponseBase = events(request, channels=[channel_of(kb_id)])
    if isinstance(response, StreamingHttpResponse):
        response.streaming_content = _while_watching(kb_id, response.streaming_content)
    return response


async def _while_watching(kb_id: int, frames: Any) -> AsyncIterator[bytes]:
    ends_at = time.monotonic() + LONGEST_STREAM_S
    watcher.enter(kb_id)
    try:
        async with aclosing(frames):
            async for frame in frames:
                yield frame
                if time.monotonic() > ends_at:
                    break
    finally:
        watcher.leave(kb_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What listeners have been told: the state of the documents at work, and the newest document known."""

    documents: dict[int, Signature] = field(default_factory=dict)
    newest_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: str
    payload: dict[str, Any]


def read_changes(kb_id: int, seen: Seen) -> tuple[Seen, tuple[Change, ...]]:
    """What is new in a knowledge base since `seen`: at most EVENTS_A_TICK changes, and what has been seen with them."""
    rows = Document.objects.filter(knowledge_base_id=kb_id)
    at_work = rows.filter(~Q(status__in=RESTING) | Q(pk__in=seen.documents) | Q(pk__gt=seen.newest_id)).order_by("pk")
    documents = dict(seen.documents)
    changes: list[Change] = []
    newest_id = seen.newest_id
    found = {document.pk: document for document in at_work}
    for pk in sorted(seen.documents.keys() - found.keys()):
        del documents[pk]
        changes.append(Change(kind="document-deleted", payload={"id": pk}))
    for pk, document in found.items():
        if len(changes) >= EVENTS_A_TICK:
            break
        newest_id = max(newest_id, pk)
        signature = (document.status, round(document.progress, 3), document.error_code, document.chunk_count)
        if documents.get(pk) != signature:
            changes.append(Change(kind="document", payload=dict(DocumentSerializer(document).data)))
        if document.status in RESTING:
            documents.pop(pk, None)
        else:
            documents[pk] = signature
    return Seen(documents=documents, newest_id=newest_id), tuple(changes)


def first_look(kb_id: int) -> Seen:
    """Where watching begins: finished documents are known already, the ones at work are told at the first tick."""
    newest = Document.objects.filter(knowledge_base_id=kb_id).order_by("-pk").values_list("pk", flat=True).first()
    return Seen(newest_id=newest or 0)


class DocumentWatcher:
    """One task a knowledge base that somebody listens to. Used from one event loop."""

    def __init__(self) -> None:
        self._listeners: Counter[int] = Counter()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def enter(self, kb_id: int) -> None:
        self._listeners[kb_id] += 1
        if kb_id not in self._tasks:
            self._tasks[kb_id] = asyncio.create_task(self._watch(kb_id), name=f"watch-kb-{kb_id}")

    def leave(self, kb_id: int) -> None:
        self._listeners[kb_id] -= 1
        if self._listeners[kb_id] <= 0:
            del self._listeners[kb_id]
            self._tasks.pop(kb_id).cancel()

    async def _watch(self, kb_id: int) -> None:
        seen: Seen | None = None
        while True:
            try:
                if seen is None:
                    seen = await run_db(first_look, kb_id)
                seen, changes = await run_db(read_changes, kb_id, seen)
                for change in changes:
                    body = json.dumps(change.payload, cls=DjangoJSONEncoder, ensure_ascii=False)
                    channel = channel_of(kb_id)
                    get_listener_manager().add_to_queues(channel, Event(channel, change.kind, body))
            except Exception:
                # The task's boundary: a database that is away for a moment must not end everybody's progress.
                logger.exception("progress_watch_failed", knowledge_base=kb_id)
            await asyncio.sleep(INTERVAL_S)


watcher = DocumentWatcher()
