"""The lease under which one slice at a time works on a document.

A slice takes the lease, and every one of its commits contains the conditional UPDATE of `Lease.commit`, which at the
same time locks the document's row, beats the heart and proves that nobody cancelled, deleted, re-ingested or took the
document over meanwhile. A lease may be taken over when its heartbeat is LEASE_S old, or at once when the process that
held it is known to be dead.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2s
from pathlib import Path
from typing import Any

from django.utils import timezone

from apps.kb.models import Document

LEASE_S = 60
ACTIVE = (
    Document.Status.PENDING,
    Document.Status.PARSING,
    Document.Status.CHUNKING,
    Document.Status.INDEXING,
)


class LeaseLost(Exception):  # noqa: N818 -- an event, not a fault
    """Somebody else decides about the document now: stop quietly, nothing of the open transaction stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    document_id: int
    revision: int
    owner: str
    attempts: int
    """Failures and deaths of workers since the document last made progress."""
    taken_from_the_dead: bool

    def commit(self, **fields: Any) -> None:
        """Writes `fields` and a heartbeat to the document's row if the lease still holds; raises LeaseLost if not."""
        now = timezone.now()
        held = Document.objects.filter(
            pk=self.document_id, lease_owner=self.owner, revision=self.revision, status__in=ACTIVE
        )
        if not held.update(heartbeat_at=now, updated_at=now, **fields):
            raise LeaseLost

    def release(self, **fields: Any) -> None:
        """`commit`, and give the lease back."""
        self.commit(**{"lease_owner": "", **fields})


def take_lease(document_id: int) -> Lease | None:
    """The lease on a document that has work to do; None if there is none, not yet, or another slice is at it."""
    now = timezone.now()
    row = (
        Document.objects.filter(pk=document_id, status__in=ACTIVE)
        .values("lease_owner", "heartbeat_at", "not_before", "attempts", "revision")
        .first()
    )
    if row is None or (row["not_before"] is not None and row["not_before"] > now):
        return None
    held = bool(row["lease_owner"])
    if held and not may_take_over(row["lease_owner"], row["heartbeat_at"], now):
        return None
    attempts = row["attempts"] + (1 if held else 0)
    owner = f"{process_identity()}:{uuid.uuid4().hex[:8]}"
    unchanged = Document.objects.filter(
        pk=document_id, status__in=ACTIVE, revision=row["revision"], lease_owner=row["lease_owner"]
    )
    if not unchanged.update(lease_owner=owner, heartbeat_at=now, updated_at=now, attempts=attempts):
        return None
    return Lease(
        document_id=document_id, revision=row["revision"], owner=owner, attempts=attempts, taken_from_the_dead=held
    )


def may_take_over(owner: str, heartbeat_at: datetime | None, now: datetime) -> bool:
    """Whether the holder has been silent for too long or is dead."""
    return heartbeat_at is None or heartbeat_at <= now - timedelta(seconds=LEASE_S) or owner_is_dead(owner)


def process_identity() -> str:
    """`space:pid:start` of this process; `space` is where its number counts (machine, boot, namespace)."""
    return f"{_process_space()}:{os.getpid()}:{_start_of(os.getpid()) or 0}"


def owner_is_dead(owner: str) -> bool:
    """True only if the process certainly no longer runs; of another machine nothing is known."""
    match owner.split(":"):
        case [space, pid, start, _nonce] if space == _process_space() and pid.isdigit():
            return not _is_running(int(pid), start)
        case _:
            return False


@lru_cache(maxsize=1)
def _process_space() -> str:
    parts = [socket.gethostname()]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(name)
        try:
            parts.append(str(path.stat().st_ino) if "ns" in path.parts else path.read_text(encoding="ascii").strip())
        except OSError:
            continue
    return blake2s("|".join(parts).encode(), digest_size=6).hexdigest()


def _is_running(pid: int, start: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    now_started = _start_of(pid)
    if not Path("/proc/self/stat").exists():
        return True
    return now_started is not None and (start == "0" or now_started == start)


def _start_of(pid: int) -> str | None:
    """Clock ticks from boot to the start of a process; None if it is gone, a zombie, or the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields[19]
