"""Indexed chunks without ingestion, and passages without a database."""

from __future__ import annotations

from apps.kb import fulltext, term_stats
from apps.kb.ingestion.indexed_text import content_hash, indexed_text
from apps.kb.models import Chunk, Document, KnowledgeBase
from apps.kb.retrieval.types import FusedCandidate, RetrievedChunk
from apps.rbac.scope import AccessScope
from docmind.text import detect_language, encode_term, encode_terms, segment


def scope_of(*kbs: KnowledgeBase) -> AccessScope:
    return AccessScope(
        user_id=1,
        permissions=frozenset({"kb:read"}),
        readable_kb_ids=frozenset(kb.pk for kb in kbs),
        manageable_kb_ids=frozenset(),
    )


def add_document(kb: KnowledgeBase, name: str = "manual.md") -> Document:
    return Document.objects.create(knowledge_base=kb, source_name=name, status=Document.Status.READY)


def add_chunk(
    document: Document,
    content: str,
    *,
    heading_path: str = "",
    live: bool = True,
    parent: Chunk | None = None,
    start: int = 0,
) -> Chunk:
    """A child chunk with its search row and, if live, its part in the statistics."""
    terms = segment(indexed_text(heading_path, content))
    chunk = _store(document, content, heading_path=heading_path, live=live, parent_chunk=parent, start_char=start)
    chunk.term_count = len(terms)
    chunk.vector_id = chunk.pk
    chunk.save()
    fulltext.write_rows([(chunk.pk, encode_terms(terms))])
    if live:
        term_stats.add(document.knowledge_base_id, [[encode_term(term) for term in terms]])
    return chunk


def add_parent(document: Document, content: str, *, start: int = 0) -> Chunk:
    return _store(document, content, heading_path="", live=True, parent_chunk=None, start_char=start)


def _store(
    document: Document, content: str, *, heading_path: str, live: bool, parent_chunk: Chunk | None, start_char: int
) -> Chunk:
    return Chunk.objects.create(
        knowledge_base=document.knowledge_base,
        document=document,
        parent_chunk=parent_chunk,
        chunk_index=document.chunks.count(),
        content=content,
        content_hash=content_hash(heading_path, content),
        lang=detect_language(content),
        heading_path=heading_path,
        start_char=start_char,
        end_char=start_char + len(content),
        source_file_name=document.source_name,
        live=live,
    )


def passage(
    chunk_id: int,
    content: str,
    *,
    child: str | None = None,
    start: int = 0,
    parent_id: int | None = None,
    score: float = 0.0,
    cosine: float | None = None,
    heading_path: str = "",
) -> RetrievedChunk:
    """A passage as it is after loading; `child` is the part of the content that was hit, by default all of it."""
    hit = content if child is None else child
    child_start = start + content.index(hit)
    return RetrievedChunk(
        chunk_id=chunk_id,
        kind="kb",
        content=content,
        child_content=hit,
        child_terms=encode_terms(segment(indexed_text(heading_path, hit))),
        knowledge_base_id=1,
        document_id=1,
        document_name="manual.md",
        heading_path=heading_path,
        page=None,
        start_char=start,
        end_char=start + len(content),
        child_start=child_start,
        child_end=child_start + len(hit),
        lang="zh",
        content_type="general",
        parent_chunk_id=parent_id,
        rerank_score=score,
        fused=FusedCandidate(chunk_id=chunk_id, score=0.01, vector_score=cosine),
    )
