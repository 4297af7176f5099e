"""Stages new chunks: rows that are not live yet, with their search rows, in short transactions.

Parents come first, then children, each in batches. A batch is there as a whole or not at all, so after a crash the
next slice goes on behind the last one. `kb_chunk.chunk_index` is a child's index; a parent has that of its first child.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import F

from apps.kb import fulltext
from apps.kb.ingestion.diff import Diff
from apps.kb.ingestion.indexed_text import indexed_text, join_headings
from apps.kb.ingestion.lease import Lease
from apps.kb.ingestion.transactions import write_transaction
from apps.kb.ingestion.types import ChildChunk, ChunkedDocument, ParentChunk, ParsedDocument
from apps.kb.models import Chunk, Document
from docmind.text import encode_terms, segment

BATCH_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """One document's revision on its way into the database."""

    document: Document
    parsed: ParsedDocument
    chunked: ChunkedDocument
    diff: Diff
    lease: Lease


def stage(staging: Staging, *, progress: Callable[[float], float], is_due: Callable[[], bool]) -> bool:
    """Stages what is not staged yet. True when all is; False when `is_due` asked for an end before.

    `progress` turns the share staged (0–1) into the document's progress. Raises LeaseLost.
    """
    parents, children = staged_rows(staging.lease)
    missing_parents = [i for i in staging.diff.new_parents if staging.chunked.parents[i].first_child not in parents]
    missing_children = [i for i in staging.diff.new_children if i not in children]
    total = max(1, len(staging.diff.new_parents) + len(staging.diff.new_children))
    left = len(missing_parents) + len(missing_children)
    for batch in _batches(missing_parents):
        if is_due():
            return False
        left -= len(batch)
        _stage_parents(staging, batch, progress(1 - left / total))
    parents, _children = staged_rows(staging.lease)
    parent_ids = parent_row_ids(staging, parents)
    for batch in _batches(missing_children):
        if is_due():
            return False
        left -= len(batch)
        _stage_children(staging, batch, parent_ids, progress(1 - left / total))
    return True


def staged_rows(lease: Lease) -> tuple[dict[int, int], dict[int, int]]:
    """Row ids by chunk_index of the staged parents and of the staged children."""
    parents: dict[int, int] = {}
    children: dict[int, int] = {}
    staged = Chunk.objects.filter(document_id=lease.document_id, live=False, revision=lease.revision)
    for pk, index, vector_id in staged.values_list("pk", "chunk_index", "vector_id"):
        (parents if vector_id is None else children)[index] = pk
    return parents, children


def parent_row_ids(staging: Staging, staged_parents: dict[int, int]) -> dict[int, int]:
    """The row of every parent, kept or staged, by its position."""
    new = {i: staged_parents[staging.chunked.parents[i].first_child] for i in staging.diff.new_parents}
    return {**new, **staging.diff.kept_parents}


def _stage_parents(staging: Staging, batch: Sequence[int], progress: float) -> None:
    rows = []
    for position in batch:
        parent = staging.chunked.parents[position]
        row = _row(staging, parent, chunk_index=parent.first_child)
        rows.append(row)
    with write_transaction():
        staging.lease.commit(progress=progress, attempts=0)
        Chunk.objects.bulk_create(rows)


def _stage_children(staging: Staging, batch: Sequence[int], parent_ids: dict[int, int], progress: float) -> None:
    rows, texts = [], {}
    for position in batch:
        child = staging.chunked.children[position]
        terms = segment(indexed_text(join_headings(child.heading_path), child.content))
        row = _row(staging, child, chunk_index=child.index)
        row.parent_chunk_id = None if child.parent_index is None else parent_ids[child.parent_index]
        row.content_type, row.tags, row.term_count = child.content_type, list(child.tags), len(terms)
        row.vector_state = Chunk.VectorState.PENDING
        rows.append(row)
        texts[child.index] = encode_terms(terms)
    with write_transaction():
        staging.lease.commit(progress=progress, attempts=0)
        Chunk.objects.bulk_create(rows)
        # Until they have a vector_id, the children among the staged rows are told from parents by their state.
        fresh = Chunk.objects.filter(
            document_id=staging.lease.document_id,
            live=False,
            revision=staging.lease.revision,
            vector_id__isnull=True,
            vector_state=Chunk.VectorState.PENDING,
        )
        ids = dict(fresh.values_list("pk", "chunk_index"))
        # By key: a search for null vector ids would lock the parents of other documents.
        Chunk.objects.filter(pk__in=list(ids)).update(vector_id=F("pk"))
        fulltext.write_rows((pk, texts[index]) for pk, index in ids.items())


def _row(staging: Staging, chunk: ChildChunk | ParentChunk, *, chunk_index: int) -> Chunk:
    return Chunk(
        knowledge_base_id=staging.document.knowledge_base_id,
        document_id=staging.lease.document_id,
        revision=staging.lease.revision,
        chunk_index=chunk_index,
        content=chunk.content,
        content_hash=chunk.content_hash,
        lang=chunk.lang,
        heading_path=join_headings(chunk.heading_path),
        page=chunk.page,
        start_char=chunk.start,
        end_char=chunk.end,
        doc_version=staging.parsed.doc_version,
        effective_date=staging.parsed.effective_date,
        source_file_name=staging.document.source_name,
        live=False,
    )


def _batches(positions: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), BATCH_ROWS):
        yield positions[start : start + BATCH_ROWS]
