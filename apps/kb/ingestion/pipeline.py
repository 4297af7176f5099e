"""The driver of ingestion: parse → chunk → diff → store → publish → embed → index, in slices under a lease.

The document's status says where it stands: pending and parsing (the Markdown is made), chunking (rows are staged and
published), indexing (it answers by keyword, vectors follow), ready. Parsing and chunking are functions of the original
alone, so a slice may do them again; rows and vectors are never made twice. Vectors give way: while a document waits
that cannot be found at all yet, a slice ends after its batch and queues up behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from django.db import OperationalError
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.aiconfig.providers.types import Embedder
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.ingestion import files
from apps.kb.ingestion.chunker import chunk_document
from apps.kb.ingestion.diff import diff_chunks
from apps.kb.ingestion.embed import embed_document, skip_vectors
from apps.kb.ingestion.lease import Lease, LeaseLost, take_lease
from apps.kb.ingestion.parsers.registry import choose_parser
from apps.kb.ingestion.publish import publish
from apps.kb.ingestion.recovery import MAX_ATTEMPTS, retry_delay, unpublished_waiting
from apps.kb.ingestion.removal import discard_staged, forget_vectors
from apps.kb.ingestion.store import Staging, stage
from apps.kb.ingestion.types import ChunkSizes, ParsedDocument, VectorIndex
from apps.kb.models import Document
from docmind.errors import PermanentError, TransientError
from docmind.telemetry import get_logger
from docmind.vectors import collection_name

logger = get_logger(__name__)

SLICE_S = 45.0
"""No batch is begun later than this, so that a slice ends within a minute."""
PARSED, CHUNKED, STORED = 0.03, 0.08, 0.30
"""Progress at the end of parsing, of chunking and of storing; embedding takes the rest."""
HEARTBEAT_S = 10.0
IMPATIENT_CONFLICTS = 3
"""So many lock conflicts in a row are tried again at once."""
PATIENT_DEATHS = 3
"""From so many deaths of workers in a row on, a document waits before it is tried again."""

_Status = Document.Status


class Outcome(Enum):
    DONE = "done"
    CONTINUE = "continue"
    WAITING = "waiting"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a slice works with. `clock` counts seconds."""

    embedder: Embedder | None
    vectors: VectorIndex
    config: ConfigSnapshot
    slice_s: float = SLICE_S
    clock: Callable[[], float] = field(default=time.monotonic)


def run_slice(document_id: int, tools: Tools) -> Outcome:
    """Works on a document for one slice. Every failure ends on its row; only a database that is gone raises."""
    lease = take_lease(document_id)
    if lease is None:
        return Outcome.NOTHING
    log = logger.bind(document=document_id, revision=lease.revision)
    started = tools.clock()
    try:
        if lease.taken_from_the_dead and lease.attempts >= PATIENT_DEATHS:
            died = TransientError(_("Processing was interrupted several times."), code="interrupted")
            return _wait_or_give_up(lease, died)
        outcome = _advance(lease, tools)
    except LeaseLost:
        log.info("ingestion_stopped")
        _clean_after_delete(lease, tools)
        return Outcome.NOTHING
    except PermanentError as error:
        log.warning("ingestion_failed", code=error.code, reason=error.message)
        return _give_up(lease, error.code, error.message)
    except TransientError as error:
        log.warning("ingestion_waits", code=error.code, reason=error.message, attempt=lease.attempts + 1)
        return _wait_or_give_up(lease, error)
    except OperationalError as error:
        log.warning("ingestion_waits", code="database_busy", reason=str(error), attempt=lease.attempts + 1)
        return _wait_or_give_up(lease, TransientError(_("The database is busy."), code="database_busy"))
    except Exception:
        log.exception("ingestion_crashed")
        unforeseen = TransientError(_("Something went wrong. It has been logged."), code="internal_error")
        return _wait_or_give_up(lease, unforeseen, is_bounded=True)
    log.info("ingestion_slice", outcome=outcome.value, ms=round((tools.clock() - started) * 1000))
    return outcome


def _advance(lease: Lease, tools: Tools) -> Outcome:
    deadline = tools.clock() + tools.slice_s

    def is_due() -> bool:
        return tools.clock() >= deadline

    def gives_way() -> bool:
        return is_due() or unpublished_waiting(timezone.now())

    document = Document.objects.select_related("knowledge_base").get(pk=lease.document_id)
    if document.status != _Status.INDEXING:
        staging = _prepare(document, lease, tools)
        if not stage(staging, progress=_share(CHUNKED, STORED), is_due=is_due):
            lease.release()
            return Outcome.CONTINUE
        with _Stage("publish", lease, tools) as log:
            fingerprint = tools.embedder.fingerprint if tools.embedder else ""
            published = publish(staging, fingerprint=fingerprint, progress=STORED)
            log.update(added=published.added, removed=published.removed, moved=published.moved)
        if tools.embedder is not None and gives_way():
            lease.release()
            return Outcome.CONTINUE
    if tools.embedder is None:
        skip_vectors(lease)
    else:
        with _Stage("embed", lease, tools):
            finished = embed_document(
                lease,
                document.knowledge_base_id,
                tools.embedder,
                tools.vectors,
                batch_size=tools.config.embedding_batch_size,
                progress=_share(STORED, 1.0),
                is_due=gives_way,
            )
        if not finished:
            lease.release()
            return Outcome.CONTINUE
    lease.release(status=_Status.READY, progress=1.0, attempts=0, not_before=None, error="", error_code="")
    return Outcome.DONE


def _prepare(document: Document, lease: Lease, tools: Tools) -> Staging:
    """Parse, chunk, diff."""
    parsed = _parsed(document, lease, tools)
    with _Stage("chunk", lease, tools) as log:
        config = tools.config
        sizes = ChunkSizes(
            child_chars=config.chunk_child_chars,
            overlap_chars=config.chunk_overlap_chars,
            parent_chars=config.chunk_parent_chars,
        )
        chunked = chunk_document(parsed, sizes, beat=_heartbeat(lease))
        if not chunked.children:
            raise PermanentError(_("The document holds no text."), code="empty_document")
        discard_staged(document.pk, keep_revision=lease.revision)
        diff = diff_chunks(document.pk, chunked)
        lease.commit(status=_Status.CHUNKING, progress=max(document.progress, CHUNKED))
        log.update(children=len(chunked.children), parents=len(chunked.parents), new=len(diff.new_children))
    return Staging(document=document, parsed=parsed, chunked=chunked, diff=diff, lease=lease)


def _parsed(document: Document, lease: Lease, tools: Tools) -> ParsedDocument:
    """What an earlier slice has parsed, else the original parsed now."""
    key = files.markdown_key(document.storage_key, lease.revision)
    if (known := files.load_parsed(key)) is not None:
        return known
    with _Stage("parse", lease, tools) as log:
        lease.commit(status=_Status.PARSING, progress=0.0)
        try:
            content = files.load_original(document.storage_key)
        except FileNotFoundError:
            raise PermanentError(_("The original file is missing."), code="original_missing") from None
        parsed = choose_parser(content, document.source_name).parse(content, document.source_name)
        lease.commit(progress=PARSED, attempts=0)
        files.store_parsed(key, parsed)
        try:
            lease.commit()
        except LeaseLost:
            _drop_orphaned(key, lease)
            raise
        log.update(bytes=len(content), chars=len(parsed.markdown), parser=parsed.parser)
    return parsed


def _heartbeat(lease: Lease) -> Callable[[], None]:
    """Beats at most each HEARTBEAT_S."""
    last = time.monotonic()

    def beat() -> None:
        nonlocal last
        if time.monotonic() - last >= HEARTBEAT_S:
            lease.commit()
            last = time.monotonic()

    return beat


def _drop_orphaned(key: str, lease: Lease) -> None:
    """The document may have been deleted, or begun again, after its files were cleared away."""
    if not Document.objects.filter(pk=lease.document_id, revision=lease.revision).exists():
        files.remove(files.keys_of_markdown(key))


def _wait_or_give_up(lease: Lease, error: TransientError, *, is_bounded: bool = False) -> Outcome:
    """Tries again later. A document that answers already, by keyword, is not given up for a fault outside it."""
    attempts = _attempts(lease) + (0 if error.code == "interrupted" else 1)
    status = Document.objects.filter(pk=lease.document_id).values_list("status", flat=True).first()
    if attempts >= MAX_ATTEMPTS and (is_bounded or status != _Status.INDEXING):
        return _give_up(lease, error.code, error.message)
    at_once = error.code == "database_busy" and attempts <= IMPATIENT_CONFLICTS
    try:
        if at_once:
            lease.release(attempts=attempts)
            return Outcome.CONTINUE
        lease.release(
            attempts=attempts,
            not_before=timezone.now() + retry_delay(attempts),
            error=error.message[:1000],
            error_code=error.code,
        )
    except LeaseLost:
        return Outcome.NOTHING
    return Outcome.WAITING


def _attempts(lease: Lease) -> int:
    """As on the row: progress in this slice has set them back."""
    return Document.objects.filter(pk=lease.document_id).values_list("attempts", flat=True).first() or 0


def _give_up(lease: Lease, code: str, message: str) -> Outcome:
    try:
        lease.release(status=_Status.FAILED, error=message[:1000], error_code=code)
    except LeaseLost:
        return Outcome.NOTHING
    discard_staged(lease.document_id)
    return Outcome.DONE


def _clean_after_delete(lease: Lease, tools: Tools) -> None:
    """A batch of vectors may have been written after the document was deleted."""
    if tools.embedder is None or Document.objects.filter(pk=lease.document_id).exists():
        return
    forget_vectors(tools.vectors, collection_name("chunks", tools.embedder.fingerprint), lease.document_id)


def _share(start: float, end: float) -> Callable[[float], float]:
    return lambda share: round(start + (end - start) * share, 4)


class _Stage:
    """Logs a stage with its counts and milliseconds when it ends without an error."""

    def __init__(self, name: str, lease: Lease, tools: Tools) -> None:
        self._name, self._lease, self._clock = name, lease, tools.clock
        self._counts: dict[str, object] = {}

    def __enter__(self) -> dict[str, object]:
        self._started = self._clock()
        return self._counts

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            ms = round((self._clock() - self._started) * 1000)
            logger.info("ingestion_stage", document=self._lease.document_id, stage=self._name, ms=ms, **self._counts)
