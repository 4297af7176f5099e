"""Weighted reciprocal rank fusion (Cormack et al. 2009): score = Σ wᵢ / (k + rankᵢ) over the searches that found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import Candidate, FusedCandidate, RetrievedChunk, Specificity


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    vector: float
    keyword: float
    k: int


def choose_weights(specificity: Specificity, config: ConfigSnapshot) -> FusionWeights:
    """Precise questions trust keywords, fuzzy ones vectors, others both alike."""
    match specificity:
        case "PRECISE":
            keyword = config.rrf_weight_bm25_precise
            return FusionWeights(vector=1 - keyword, keyword=keyword, k=config.rrf_k_precise)
        case "FUZZY":
            vector = config.rrf_weight_vector_semantic
            return FusionWeights(vector=vector, keyword=1 - vector, k=config.rrf_k)
        case "NORMAL":
            return FusionWeights(vector=0.5, keyword=0.5, k=config.rrf_k)


def fuse(
    vector: Sequence[Candidate], keyword: Sequence[Candidate], weights: FusionWeights
) -> tuple[FusedCandidate, ...]:
    """Both rankings (best first, no id twice) as one, best first, ties by id."""
    vector_places = {candidate.chunk_id: (rank, candidate) for rank, candidate in enumerate(vector, start=1)}
    keyword_places = {candidate.chunk_id: (rank, candidate) for rank, candidate in enumerate(keyword, start=1)}
    fused = [
        _fuse_one(chunk_id, vector_places.get(chunk_id), keyword_places.get(chunk_id), weights)
        for chunk_id in vector_places.keys() | keyword_places.keys()
    ]
    return tuple(sorted(fused, key=lambda candidate: (-candidate.score, candidate.chunk_id)))


def _fuse_one(
    chunk_id: int,
    vector: tuple[int, Candidate] | None,
    keyword: tuple[int, Candidate] | None,
    weights: FusionWeights,
) -> FusedCandidate:
    vector_rank, vector_hit = vector or (None, None)
    keyword_rank, keyword_hit = keyword or (None, None)
    score = 0.0
    if vector_rank is not None:
        score += weights.vector / (weights.k + vector_rank)
    if keyword_rank is not None:
        score += weights.keyword / (weights.k + keyword_rank)
    return FusedCandidate(
        chunk_id=chunk_id,
        score=score,
        vector_rank=vector_rank,
        vector_score=vector_hit.score if vector_hit else None,
        keyword_rank=keyword_rank,
        keyword_score=keyword_hit.score if keyword_hit else None,
        exact=any(hit.exact for hit in (vector_hit, keyword_hit) if hit),
    )


def select(fused: Sequence[FusedCandidate], limit: int) -> tuple[FusedCandidate, ...]:
    """The `limit` candidates that go on, in fused order.

    The exact lane: up to half of the places belong to candidates that hold an identifier of the query, however low the
    other search put them. They are taken in the order of keyword search.
    """
    exact = sorted(
        (candidate for candidate in fused if candidate.exact),
        key=lambda candidate: (candidate.keyword_rank or len(fused) + 1, candidate.chunk_id),
    )[: (limit + 1) // 2]
    kept = {candidate.chunk_id for candidate in exact}
    for candidate in fused:
        if len(kept) >= limit:
            break
        kept.add(candidate.chunk_id)
    return tuple(candidate for candidate in fused if candidate.chunk_id in kept)


def select_loaded(chunks: Sequence[RetrievedChunk], limit: int) -> tuple[RetrievedChunk, ...]:
    """`select` once more, among the candidates whose rows could be loaded."""
    kept = {candidate.chunk_id for candidate in select([chunk.fused for chunk in chunks if chunk.fused], limit)}
    return tuple(chunk for chunk in chunks if chunk.chunk_id in kept)
