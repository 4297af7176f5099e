"""Term-coverage reranking: orders the candidates by what they say about the query, and says how much that is.

1. Each passage gets four lexical signals from 0 to 1, terms weighted by idf: the query's terms in it, saturated as in
   BM25; the query's neighbouring terms that are neighbours in it; the query's terms in its headings; the query's
   identifiers in it as written. A signal that the query does not have leaves its weight to the others.
2. Its cosine, scaled between the lowest and the highest of the candidates, because the useful range of cosines is each
   embedding model's own; a passage that vector search had and did not find counts as the lowest. Where nothing was
   searched by vector, and for a passage of another source, the lexical signals count alone.
3. The sum orders. The score that is reported is absolute: the best passage gets the share of the query's terms that the
   first passages hold, the others get theirs in proportion. An unanswerable question thus scores low throughout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from apps.kb.retrieval.query import CollectionStatistics, QueryTerms, stand_together
from apps.kb.retrieval.types import RetrievedChunk
from docmind.text import encode_terms, segment

Key = TypeVar("Key")

MODEL = "term-coverage"

TERM_WEIGHT = 0.45
PAIR_WEIGHT = 0.1
HEADING_WEIGHT = 0.1
IDENTIFIER_WEIGHT = 0.15
COSINE_WEIGHT = 0.35
SATURATION = 1.2
LENGTH_SHARE = 0.75
EVIDENCE_PASSAGES = 3
LEAST_EVIDENCE = 0.1
"""What the best passage scores where no term of the query occurs, as with a question in another language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assessment:
    relevance: float
    coverage: float
    chunk: RetrievedChunk


def rerank(
    chunks: Sequence[RetrievedChunk], query: QueryTerms, statistics: CollectionStatistics, *, top_k: int
) -> tuple[RetrievedChunk, ...]:
    """The best passages with their scores, best first: `top_k`, where children of one parent are one passage."""
    if not chunks:
        return ()
    weights = _Weights.of(query, statistics)
    lexical = [_assess(chunk, weights, statistics.average_terms) for chunk in chunks]
    assessed = _add_cosines(lexical)
    assessed.sort(key=lambda entry: -entry.relevance)
    evidence = max(LEAST_EVIDENCE, *(entry.coverage for entry in assessed[:EVIDENCE_PASSAGES]))
    best = assessed[0].relevance or 1.0
    scored = (replace(entry.chunk, rerank_score=evidence * entry.relevance / best) for entry in assessed)
    return _keep_passages(tuple(scored), top_k)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """Each signal's features (terms, pairs, identifiers by place) with their shares, which sum to 1."""

    terms: dict[str, float]
    pairs: dict[tuple[str, str], float]
    identifiers: dict[int, float]
    query: QueryTerms

    @classmethod
    def of(cls, query: QueryTerms, statistics: CollectionStatistics) -> _Weights:
        idf = {term: statistics.idf(term) for term in query.terms}
        identifiers = dict(enumerate(statistics.idf(identifier.term) for identifier in query.identifiers))
        pairs = {pair: idf[pair[0]] + idf[pair[1]] for pair in query.pairs}
        return cls(terms=_as_shares(idf), pairs=_as_shares(pairs), identifiers=_as_shares(identifiers), query=query)


def _assess(chunk: RetrievedChunk, weights: _Weights, average_terms: float) -> _Assessment:
    """The passage's lexical relevance, from 0 to 1."""
    text = chunk.child_terms or encode_terms(segment(f"{chunk.heading_path}\n{chunk.content}"))
    padded = f" {text} "
    terms = text.split(" ")
    counts = Counter(filter(weights.terms.__contains__, terms))
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(terms) / average_terms)
    heading = _heading_terms(chunk.heading_path)
    signals = [
        (
            TERM_WEIGHT,
            sum(
                share * counts[term] / (counts[term] + norm) for term, share in weights.terms.items() if term in counts
            ),
        ),
        (HEADING_WEIGHT, sum(share for term, share in weights.terms.items() if term in heading)),
    ]
    if weights.pairs:
        signals.append(
            (PAIR_WEIGHT, sum(share for pair, share in weights.pairs.items() if stand_together(pair, padded, counts)))
        )
    if weights.identifiers:
        identifiers = weights.query.identifiers
        held = sum(
            share for place, share in weights.identifiers.items() if identifiers[place].occurs_in(padded, counts)
        )
        signals.append((IDENTIFIER_WEIGHT, held))
    return _Assessment(
        relevance=sum(weight * signal for weight, signal in signals) / sum(weight for weight, _ in signals),
        coverage=sum(weights.terms[term] for term in counts),
        chunk=chunk,
    )


def _add_cosines(assessed: Sequence[_Assessment]) -> list[_Assessment]:
    cosines = [
        entry.chunk.fused.vector_score
        for entry in assessed
        if entry.chunk.fused is not None and entry.chunk.fused.vector_score is not None
    ]
    if not cosines:
        return list(assessed)
    lowest, width = min(cosines), max(cosines) - min(cosines)
    return [
        entry
        if entry.chunk.fused is None
        else replace(
            entry,
            relevance=(1 - COSINE_WEIGHT) * entry.relevance
            + COSINE_WEIGHT * _scaled(entry.chunk.fused.vector_score, lowest, width),
        )
        for entry in assessed
    ]


def _scaled(cosine: float | None, lowest: float, width: float) -> float:
    if cosine is None:
        return 0.0
    return (cosine - lowest) / width if width > 0 else 1.0


def _keep_passages(chunks: Sequence[RetrievedChunk], top_k: int) -> tuple[RetrievedChunk, ...]:
    kept: dict[str, RetrievedChunk] = {}
    for chunk in chunks:
        passage = f"parent:{chunk.parent_chunk_id}" if chunk.parent_chunk_id is not None else chunk.dedupe_key
        kept.setdefault(passage, chunk)
    return tuple(kept.values())[:top_k]


def _as_shares(weights: dict[Key, float]) -> dict[Key, float]:
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()} if total else {}


@lru_cache(maxsize=2048)
def _heading_terms(heading_path: str) -> frozenset[str]:
    return frozenset(encode_terms(segment(heading_path)).split())
