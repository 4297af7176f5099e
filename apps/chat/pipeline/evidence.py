"""What was found, told as events, and the passages that fit into the prompt as numbered evidence."""

from __future__ import annotations

from django.utils.translation import gettext as _

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.chat.pipeline.events import Citation, Evidence, Grader, Rerank, Retrieval, Source
from apps.chat.pipeline.prompt import fence_passage
from apps.chat.pipeline.types import AskRequest, QueryClassification
from apps.kb.retrieval.grade import grade
from apps.kb.retrieval.types import RetrievalResult, RetrievedChunk, SearchRequest
from docmind.text import estimate_tokens

SNIPPET_CHARS = 240


def search_request(request: AskRequest, classification: QueryClassification) -> SearchRequest:
    """The one search of the rule planner's path."""
    return SearchRequest(
        query=classification.rewritten,
        scope=request.scope,
        mode="hybrid",
        specificity=classification.specificity,
        document_ids=request.document_ids,
    )


def retrieval_event(result: RetrievalResult) -> Retrieval:
    return Retrieval(
        kb_count=result.candidates,
        web_count=0,
        memory_count=0,
        ms=round(sum(timing.ms for timing in result.timings if timing.stage != "rerank"), 1),
        degraded=tuple(item for item in result.degraded if item.part != "rerank"),
    )


def rerank_event(result: RetrievalResult) -> Rerank:
    return Rerank(
        candidates=result.candidates,
        kept=len(result.chunks),
        top_score=round(result.top_score, 4),
        model=result.rerank_model,
        ms=round(sum(timing.ms for timing in result.timings if timing.stage == "rerank"), 1),
        degraded="; ".join(item.reason for item in result.degraded if item.part == "rerank"),
    )


def grade_event(query: str, result: RetrievalResult, config: ConfigSnapshot) -> Grader:
    graded = grade(query, result.chunks, config)
    return Grader(
        tier=graded.tier,
        top_score=round(graded.top_score, 4),
        avg_score=round(graded.avg_score, 4),
        lex_coverage=round(graded.lex_coverage, 4),
        kb_entity_weak=graded.kb_entity_weak,
        reason=graded.reason,
    )


def select_evidence(result: RetrievalResult, grader: Grader, config: ConfigSnapshot) -> Evidence:
    """The passages in order, as far as the budget for passages reaches; one that does not fit is skipped.

    The best passage is always kept: without it there would be no evidence where there is some.
    """
    chosen: list[RetrievedChunk] = []
    left_tokens = config.rag_context_max_tokens
    for chunk in result.chunks:
        cost_tokens = estimate_tokens(fence_passage(len(chosen) + 1, chunk))
        if chosen and cost_tokens > left_tokens:
            continue
        chosen.append(chunk)
        left_tokens -= cost_tokens
    return Evidence(chunks=tuple(chosen), tier=grader.tier, top_score=result.top_score)


def sources_of(evidence: Evidence) -> tuple[Source, ...]:
    """The numbered passages for the reader; the offsets are those of the child that was hit."""
    return tuple(
        Source(
            index=index,
            id=chunk.chunk_id,
            name=chunk.document_name or _("unnamed"),
            page=chunk.page,
            snippet=_snippet(chunk.child_content or chunk.content),
            kind=chunk.kind,
            heading_path=chunk.heading_path,
            document_id=chunk.document_id,
            knowledge_base_id=chunk.knowledge_base_id,
            start=chunk.child_start,
            end=chunk.child_end,
            url=chunk.url,
        )
        for index, chunk in enumerate(evidence.chunks, start=1)
    )


def citation_of(evidence: Evidence, index: int) -> Citation:
    """The citation `[index]`: the child passage it leads to."""
    chunk = evidence.chunks[index - 1]
    return Citation(
        index=index,
        id=chunk.chunk_id,
        name=chunk.document_name,
        page=chunk.page,
        document_id=chunk.document_id,
        start=chunk.child_start,
        end=chunk.child_end,
    )


def _snippet(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1].rstrip() + "…"
