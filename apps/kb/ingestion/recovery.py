"""Which documents the sweep must wake, which go first, and how long one that failed for the moment waits."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from apps.kb.ingestion.lease import ACTIVE, may_take_over
from apps.kb.models import Document

FIRST_DELAY_S = 10
LONGEST_DELAY_S = 600
MAX_ATTEMPTS = 8
"""So many failures without progress make a document that is not yet published a failed one (about twenty minutes)."""


def retry_delay(attempts: int) -> timedelta:
    """The wait after the `attempts`-th failure in a row, from 1: doubled each time up to LONGEST_DELAY_S."""
    return timedelta(seconds=min(FIRST_DELAY_S * 2 ** min(attempts - 1, 10), LONGEST_DELAY_S))


def documents_to_wake(now: datetime, *, idle_s: int, limit: int) -> list[int]:
    """Documents that have work, are due, and that nobody holds: their task may be lost.

    One whose lease is free counts once nothing has happened to it for `idle_s`; one whose holder is silent or dead, at
    once.
    """
    due = Document.objects.filter(status__in=ACTIVE).filter(Q(not_before__isnull=True) | Q(not_before__lte=now))
    idle_since = now - timedelta(seconds=idle_s)
    found: list[int] = []
    rows = due.order_by("heartbeat_at", "pk").values_list("pk", "lease_owner", "heartbeat_at", "not_before")
    for pk, owner, heartbeat_at, not_before in rows.iterator(chunk_size=500):
        if owner:
            is_lost = may_take_over(owner, heartbeat_at, now)
        else:
            is_lost = heartbeat_at is None or heartbeat_at <= (not_before or idle_since)
        if is_lost:
            found.append(pk)
        if len(found) == limit:
            break
    return found


def unpublished_waiting(now: datetime) -> bool:
    """Whether some document cannot be found at all yet and nobody is at it: it goes before the vectors of others."""
    waiting = Document.objects.filter(
        status__in=(Document.Status.PENDING, Document.Status.PARSING, Document.Status.CHUNKING), lease_owner=""
    )
    return waiting.filter(Q(not_before__isnull=True) | Q(not_before__lte=now)).exists()


def mark_woken(document_id: int, now: datetime) -> None:
    """Notes that a task is in the queue, so that the next sweep does not add another."""
    Document.objects.filter(pk=document_id, lease_owner="").update(heartbeat_at=now, not_before=None)
