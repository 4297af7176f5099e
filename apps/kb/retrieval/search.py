"""Retrieval from a query to the passages of a prompt.

    vector and keyword → RRF → rerank → parent expansion → compression

The two searches run side by side. One that fails or is late is left out, the other answers, and the result says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection
from dataclasses import dataclass

from django.db import DatabaseError
from django.utils.translation import gettext as _

from apps.aiconfig.providers.types import Embedder
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.compress import compress
from apps.kb.retrieval.fusion import choose_weights, fuse, select, select_loaded
from apps.kb.retrieval.keyword import search_keywords
from apps.kb.retrieval.load import load_chunks
from apps.kb.retrieval.parents import expand_parents
from apps.kb.retrieval.query import CollectionStatistics, QueryTerms, parse_query, read_statistics
from apps.kb.retrieval.rerank import MODEL, rerank
from apps.kb.retrieval.types import (
    Candidate,
    Degradation,
    RetrievalResult,
    SearchRequest,
    Specificity,
    StageTiming,
)
from apps.kb.retrieval.vector import VectorSearcher, search_vectors
from docmind.errors import DocMindError
from docmind.executor import run_db
from docmind.telemetry import get_logger

logger = get_logger(__name__)

SPARE_CANDIDATES = 20
"""Loaded beyond what the reranker takes, in place of those whose row is no longer visible."""


async def search(
    request: SearchRequest, *, config: ConfigSnapshot, embedder: Embedder | None, vectors: VectorSearcher
) -> RetrievalResult:
    """The best passages in the request's scope, best first.

    An empty scope gives an empty result without a call. Raises django.db.DatabaseError when the database is down.
    """
    if not request.scope.readable_kb_ids:
        return RetrievalResult(chunks=(), candidates=0, rerank_model=MODEL, degraded=(), timings=())
    watch = _Stopwatch()
    query, statistics = await run_db(_prepare, request.query, request.scope.readable_kb_ids)
    watch.lap("query")

    vector, keyword = await _search_both(request, query, statistics, config=config, embedder=embedder, vectors=vectors)
    watch.skip()

    weights = choose_weights(_specificity(request.specificity, query), config)
    fused = fuse(vector.candidates, keyword.candidates, weights)
    watch.lap("fusion")

    top_k = request.top_k or config.rerank_top_k
    pool = max(config.rerank_candidates, top_k)
    loaded = await run_db(
        load_chunks,
        select(fused, pool + SPARE_CANDIDATES),
        kb_ids=request.scope.readable_kb_ids,
        document_ids=request.document_ids,
    )
    candidates = select_loaded(loaded.chunks, pool)
    watch.lap("load")

    ranked = rerank(candidates, query, statistics, top_k=top_k)
    watch.lap("rerank")

    expanded = expand_parents(ranked, loaded.parents)
    watch.lap("parents")

    passages = compress(expanded, request.query, config=config, fit_prompt=request.fit_prompt)
    watch.lap("compress")

    return RetrievalResult(
        chunks=passages,
        candidates=len(candidates),
        rerank_model=MODEL,
        degraded=tuple(attempt.degradation for attempt in (vector, keyword) if attempt.degradation),
        timings=(*vector.timings, *keyword.timings, *watch.timings),
    )


def _prepare(text: str, kb_ids: Collection[int]) -> tuple[QueryTerms, CollectionStatistics]:
    query = parse_query(text)
    return query, read_statistics({*query.terms, *(identifier.term for identifier in query.identifiers)}, kb_ids)


def _specificity(asked: Specificity, query: QueryTerms) -> Specificity:
    """Where nobody understood the question before, one that names an identifier is precise."""
    return "PRECISE" if asked == "NORMAL" and query.identifiers else asked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What one search gave: candidates, or the reason why there are none."""

    candidates: tuple[Candidate, ...] = ()
    degradation: Degradation | None = None
    timings: tuple[StageTiming, ...] = ()


async def _search_both(
    request: SearchRequest,
    query: QueryTerms,
    statistics: CollectionStatistics,
    *,
    config: ConfigSnapshot,
    embedder: Embedder | None,
    vectors: VectorSearcher,
) -> tuple[_Attempt, _Attempt]:
    """Both searches, each with its own time limit. Keywords stand in for a vector search that gave way."""

    def by_keyword() -> Awaitable[_Attempt]:
        call = run_db(
            search_keywords,
            query,
            statistics,
            kb_ids=request.scope.readable_kb_ids,
            document_ids=request.document_ids,
            config=config,
        )
        return _attempt("keyword", call, config.retrieval_worker_timeout_s)

    async def by_vector() -> _Attempt:
        if not request.query.strip():
            return _Attempt()
        if embedder is None:
            return _Attempt(degradation=Degradation(part="embedding", reason=_("No embedding model is available.")))
        call = search_vectors(
            request.query,
            kb_ids=request.scope.readable_kb_ids,
            document_ids=request.document_ids,
            embedder=embedder,
            vectors=vectors,
            config=config,
        )
        return await _attempt("vector", call, config.retrieval_worker_timeout_s)

    match request.mode:
        case "keyword":
            return _Attempt(), await by_keyword()
        case "vector":
            vector = await by_vector()
            return vector, await by_keyword() if vector.degradation else _Attempt()
        case "hybrid":
            return await asyncio.gather(by_vector(), by_keyword())


async def _attempt(part: str, call: Awaitable[tuple[Candidate, ...]], timeout_s: float) -> _Attempt:
    started = time.perf_counter()
    degradation = None
    candidates: tuple[Candidate, ...] = ()
    try:
        async with asyncio.timeout(timeout_s):
            candidates = await call
    except TimeoutError:
        degradation = Degradation(part=part, reason=_("It took longer than %(limit)g s.") % {"limit": timeout_s})
    except DocMindError as error:
        degradation = Degradation(part=part, reason=error.message)
    except DatabaseError:
        logger.exception("search_failed", part=part)
        degradation = Degradation(part=part, reason=_("The database refused the search."))
    if degradation:
        logger.warning("search_degraded", part=part, reason=degradation.reason)
    timing = StageTiming(stage=part, ms=(time.perf_counter() - started) * 1000)
    return _Attempt(candidates=candidates, degradation=degradation, timings=(timing,))


class _Stopwatch:
    """Measures the stages of one search, one after the other."""

    def __init__(self) -> None:
        self.timings: list[StageTiming] = []
        self._started = time.perf_counter()

    def lap(self, stage: str) -> None:
        self.timings.append(StageTiming(stage=stage, ms=(time.perf_counter() - self._started) * 1000))
        self.skip()

    def skip(self) -> None:
        self._started = time.perf_counter()
