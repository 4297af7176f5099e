"""Makes a staged revision the one that answers, in one short transaction.

1. Outside it: what moves among the kept rows, and the change of term statistics, from the search rows as stored.
2. Inside: the lease is proved, staged rows become live, kept rows are renumbered, replaced rows go with their search
   rows, the statistics follow, the knowledge base's version rises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.kb import term_stats
from apps.kb.ingestion import files
from apps.kb.ingestion.removal import remove_chunks
from apps.kb.ingestion.store import Staging, parent_row_ids, staged_rows
from apps.kb.ingestion.term_batches import terms_of
from apps.kb.ingestion.transactions import write_transaction
from apps.kb.models import Chunk, Document, KnowledgeBase
from docmind.errors import TransientError
from docmind.telemetry import get_logger

logger = get_logger(__name__)

_PLACED = (
    "chunk_index",
    "parent_chunk_id",
    "start_char",
    "end_char",
    "page",
    "content_type",
    "tags",
    "doc_version",
    "effective_date",
    "source_file_name",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a publication changed, in rows."""

    added: int
    removed: int
    moved: int


def publish(staging: Staging, *, fingerprint: str, progress: float) -> Published:
    """Publishes. `fingerprint` of the embedder, empty if there is none. Raises LeaseLost, TransientError."""
    lease, diff = staging.lease, staging.diff
    parents, children = staged_rows(lease)
    if len(parents) != len(diff.new_parents) or len(children) != len(diff.new_children):
        raise TransientError(_("Rows that were stored are missing."), code="staging_incomplete")
    moves = list(_moves(staging, parents))
    delta = term_stats.count_terms(terms_of(children.values())).minus(
        term_stats.count_terms(terms_of(diff.removed_children))
    )
    changes = bool(parents or children or moves or diff.removed_children or diff.removed_parents)
    old_key = staging.document.markdown_key
    key = files.markdown_key(staging.document.storage_key, lease.revision)
    with write_transaction():
        lease.commit(
            status=Document.Status.INDEXING,
            progress=progress,
            attempts=0,
            markdown_key=key,
            parser=staging.parsed.parser,
            doc_version=staging.parsed.doc_version,
            effective_date=staging.parsed.effective_date,
            page_count=len(staging.parsed.pages) or None,
            chunk_count=len(staging.chunked.children),
            published_at=timezone.now(),
        )
        if changes:
            version = {"version": F("version") + 1, "updated_at": timezone.now()}
            KnowledgeBase.objects.filter(pk=staging.document.knowledge_base_id).update(**version)
        Chunk.objects.filter(document_id=lease.document_id, live=False, revision=lease.revision).update(live=True)
        _move(moves)
        remove_chunks(diff.removed_children, diff.removed_parents)
        term_stats.apply_delta(staging.document.knowledge_base_id, delta)
        _ask_for_vectors(staging.document, fingerprint)
    if old_key and old_key != key:
        files.remove(files.keys_of_markdown(old_key))
    return Published(
        added=len(parents) + len(children),
        removed=len(diff.removed_children) + len(diff.removed_parents),
        moved=len(moves),
    )


def _moves(staging: Staging, staged_parents: dict[int, int]) -> Iterator[tuple[Any, ...]]:
    """For each kept row that changes: the new values of _PLACED, whether it needs its vector again, its id."""
    parent_ids = parent_row_ids(staging, staged_parents)
    wanted: dict[int, tuple[Any, ...]] = {}
    shared = (staging.parsed.doc_version, staging.parsed.effective_date, staging.document.source_name)
    for position, pk in staging.diff.kept_children.items():
        child = staging.chunked.children[position]
        parent_id = None if child.parent_index is None else parent_ids[child.parent_index]
        place = (child.index, parent_id, child.start, child.end, child.page)
        wanted[pk] = (*place, child.content_type, list(child.tags), *shared)
    for position, pk in staging.diff.kept_parents.items():
        parent = staging.chunked.parents[position]
        place = (parent.first_child, None, parent.start, parent.end, parent.page)
        wanted[pk] = (*place, Chunk.ContentType.GENERAL.value, [], *shared)
    rows = Chunk.objects.filter(document_id=staging.lease.document_id, live=True)
    tags = _PLACED.index("tags")
    for pk, state, *values in rows.values_list("pk", "vector_state", *_PLACED).iterator(chunk_size=2000):
        new = wanted.get(pk)
        if new is None or new == tuple(values):
            continue
        # The vector store filters by tags, so its row must be written again when they change.
        stale = new[tags] != values[tags] and state == Chunk.VectorState.STORED
        new_state = Chunk.VectorState.PENDING.value if stale else state
        yield (*map(_as_column, new), new_state, pk)


def _as_column(value: Any) -> Any:
    match value:
        case list():
            return json.dumps(value)
        case date():
            return value.isoformat()
        case _:
            return value


def _move(moves: Iterable[tuple[Any, ...]]) -> None:
    assignments = ", ".join(f"{column} = %s" for column in (*_PLACED, "vector_state"))
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE kb_chunk SET {assignments} WHERE id = %s", list(moves))  # noqa: S608


def _ask_for_vectors(document: Document, fingerprint: str) -> None:
    """Kept rows without a vector ask for one again; all do where the knowledge base has those of another model."""
    children = Chunk.objects.filter(document_id=document.pk, live=True, vector_id__isnull=False)
    stored_by = document.knowledge_base.embedding_fingerprint
    if fingerprint and stored_by and stored_by != fingerprint:
        logger.warning("embedding_model_changed", document=document.pk, stored_by=stored_by, now=fingerprint)
        children.update(vector_state=Chunk.VectorState.PENDING)
    else:
        children.filter(vector_state=Chunk.VectorState.NONE).update(vector_state=Chunk.VectorState.PENDING)
