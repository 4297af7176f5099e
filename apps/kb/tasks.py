"""Django-q2's face of ingestion: the queue only wakes, the document's row is the truth.

`ingest` works one slice and queues its continuation; `sweep`, each minute and at the start of every worker process,
wakes documents whose task was lost with its worker or its queue.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.utils import timezone, translation
from django_q.brokers import get_broker
from django_q.models import Schedule
from django_q.tasks import async_task

from apps.aiconfig.providers.registry import current_providers
from apps.aiconfig.services import current_config
from apps.kb.ingestion.lease import LEASE_S
from apps.kb.ingestion.pipeline import Outcome, Tools, run_slice
from apps.kb.ingestion.recovery import documents_to_wake, mark_woken
from apps.kb.ingestion.removal import forget_vectors as remove_vectors
from docmind.telemetry import get_logger
from docmind.vectors import collection_name, get_vector_store

logger = get_logger(__name__)

INGEST = "apps.kb.tasks.ingest"
SWEEP = "apps.kb.tasks.sweep"
FORGET_VECTORS = "apps.kb.tasks.forget_vectors"
MAX_WAITING = 50
"""With so many tasks waiting in the queue the sweep adds none."""


def enqueue_ingest(document_id: int) -> None:
    """Queues a slice once the open transaction is committed; if the broker is down, the sweep comes to it."""
    transaction.on_commit(lambda: _send(INGEST, document_id), robust=True)


def enqueue_forget_vectors(document_id: int, fingerprint: str) -> None:
    """Queues the removal of a deleted document's vectors once the open transaction is committed."""
    transaction.on_commit(lambda: _send(FORGET_VECTORS, document_id, fingerprint), robust=True)


def ingest(document_id: int) -> str:
    """One slice of a document's ingestion. Returns its outcome, for the task's record.

    What it writes on the row is the catalogue's English text, which readers see in their own language.
    """
    with translation.override("en"):
        outcome = run_slice(document_id, _tools())
    if outcome is Outcome.CONTINUE:
        enqueue_ingest(document_id)
    return outcome.value


def sweep() -> int:
    """Queues documents that have work and nobody at it. Returns how many."""
    room = MAX_WAITING - get_broker().queue_size()
    if room <= 0:
        return 0
    woken, now = 0, timezone.now()
    for document_id in documents_to_wake(now, idle_s=LEASE_S, limit=room):
        mark_woken(document_id, now)
        enqueue_ingest(document_id)
        woken += 1
    if woken:
        logger.info("sweep", woken=woken)
    return woken


def forget_vectors(document_id: int, fingerprint: str) -> None:
    """Removes the vectors of a deleted document, those of the knowledge base's model and those of the present one."""
    embedder = current_providers().embedder
    for known in sorted({fingerprint, embedder.fingerprint if embedder else ""} - {""}):
        remove_vectors(get_vector_store(), collection_name("chunks", known), document_id)


def ensure_schedule(**kwargs: Any) -> None:
    """After migrations: the sweep stands in django-q2's schedule, once."""
    if Schedule._meta.db_table not in connection.introspection.table_names():
        return
    if not Schedule.objects.filter(func=SWEEP).exists():
        Schedule.objects.create(name="kb sweep", func=SWEEP, schedule_type=Schedule.MINUTES, minutes=1, repeats=-1)


def sweep_at_worker_start(**kwargs: Any) -> None:
    """A worker process that starts may stand in for one that died: its documents need not wait for the minute."""
    try:
        sweep()
    except Exception:
        logger.exception("sweep_failed")


def _tools() -> Tools:
    return Tools(embedder=current_providers().embedder, vectors=get_vector_store(), config=current_config())


def _send(func: str, *args: object) -> None:
    async_task(func, *args, group="ingestion")
