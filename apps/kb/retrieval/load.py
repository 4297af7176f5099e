"""The rows of the fused candidates, and of their parents, in one query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from apps.kb import fulltext
from apps.kb.models import Chunk
from apps.kb.retrieval.types import FusedCandidate, LoadedChunks, ParentPassage, RetrievedChunk

COLUMNS = (
    "id",
    "content",
    "knowledge_base_id",
    "document_id",
    "document__source_name",
    "heading_path",
    "page",
    "start_char",
    "end_char",
    "lang",
    "content_type",
    "vector_id",
    "parent_chunk_id",
    "parent_chunk__content",
    "parent_chunk__start_char",
    "parent_chunk__end_char",
)


def load_chunks(
    candidates: Sequence[FusedCandidate], *, kb_ids: Collection[int], document_ids: Collection[int] | None
) -> LoadedChunks:
    """The candidates' passages in the given order. What is not live or not in scope is left out, whoever found it."""
    rows = Chunk.objects.filter(
        id__in=[candidate.chunk_id for candidate in candidates], live=True, knowledge_base_id__in=kb_ids
    )
    if document_ids is not None:
        rows = rows.filter(document_id__in=document_ids)
    found = {
        row["id"]: row
        for row in rows.annotate(child_terms=fulltext.search_text_expression()).values(*COLUMNS, "child_terms")
    }
    present = [(found[candidate.chunk_id], candidate) for candidate in candidates if candidate.chunk_id in found]
    return LoadedChunks(
        chunks=tuple(_passage(row, candidate) for row, candidate in present),
        parents={row["parent_chunk_id"]: _parent(row) for row, _ in present if row["parent_chunk_id"] is not None},
    )


def _passage(row: dict[str, Any], candidate: FusedCandidate) -> RetrievedChunk:
    return RetrievedChunk(
        chunk_id=row["id"],
        kind="kb",
        content=row["content"],
        child_content=row["content"],
        child_terms=row["child_terms"] or "",
        knowledge_base_id=row["knowledge_base_id"],
        document_id=row["document_id"],
        document_name=row["document__source_name"],
        heading_path=row["heading_path"],
        page=row["page"],
        start_char=row["start_char"],
        end_char=row["end_char"],
        child_start=row["start_char"],
        child_end=row["end_char"],
        lang=row["lang"],
        content_type=row["content_type"],
        parent_chunk_id=row["parent_chunk_id"],
        vector_id=row["vector_id"],
        fused=candidate,
    )


def _parent(row: dict[str, Any]) -> ParentPassage:
    return ParentPassage(
        content=row["parent_chunk__content"],
        start_char=row["parent_chunk__start_char"],
        end_char=row["parent_chunk__end_char"],
    )
