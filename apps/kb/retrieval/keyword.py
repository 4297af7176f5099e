"""Keyword search on two levels: a Boolean candidate stage in the database, then exact BM25.

1. Terms that no chunk holds are dropped; the others are ordered by document frequency, identifiers before the rest.
2. Full text is asked for chunks with any of the rarest terms, as many terms as cannot exceed the limit together. If
   that leaves room, for those with all of the frequent terms, then with two of the rarest of these; and only if there
   are still few, with any term. The engines' own ranks are never used: rows come level by level, then by id.
3. BM25 (Robertson and Zaragoza 2009) scores each candidate with all terms,

       score = Σ idf(t) · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average length))

   with idf, count and average length of everything searched, not of the candidates, and is raised by up to
   PHRASE_BONUS of itself by the share of the query's neighbouring terms that are neighbours in the chunk too.
4. Order: score, then id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb import fulltext
from apps.kb.fulltext import SearchRow
from apps.kb.retrieval.query import CollectionStatistics, QueryTerms, stand_together
from apps.kb.retrieval.types import Candidate

PHRASE_BONUS = 0.3
MAX_MATCHED_TERMS = 64
PAIRED_TERMS = 4
FEW_SHARE = 0.25
"""Under this share of the limit, chunks with any term of the query are taken too."""

TermGroups = tuple[tuple[str, ...], ...]
"""A Boolean question: chunks that hold all terms of at least one group."""


def search_keywords(
    query: QueryTerms,
    statistics: CollectionStatistics,
    *,
    kb_ids: Collection[int],
    document_ids: Collection[int] | None,
    config: ConfigSnapshot,
) -> tuple[Candidate, ...]:
    """The candidates with their BM25 scores, best first; uses the database, at most four statements."""
    rows = _find_rows(
        query, statistics, kb_ids=kb_ids, document_ids=document_ids, limit=config.retrieval_bm25_candidates
    )
    return score_rows(rows, query, statistics, k1=config.bm25_k1, b=config.bm25_b)


def _find_rows(
    query: QueryTerms,
    statistics: CollectionStatistics,
    *,
    kb_ids: Collection[int],
    document_ids: Collection[int] | None,
    limit: int,
) -> list[SearchRow]:
    found: dict[int, SearchRow] = {}
    levels = plan_levels(query, statistics, limit)
    for number, groups in enumerate(levels, start=1):
        enough = limit if number < len(levels) else limit * FEW_SHARE
        if len(found) < enough:
            for row in fulltext.match(groups, kb_ids=kb_ids, document_ids=document_ids, limit=limit):
                found.setdefault(row.chunk_id, row)
    return list(found.values())[:limit]


def plan_levels(query: QueryTerms, statistics: CollectionStatistics, limit: int) -> tuple[TermGroups, ...]:
    """The Boolean questions of the candidate stage, the most selective first, the widest last."""
    identifiers = frozenset(identifier.term for identifier in query.identifiers)
    known = sorted(
        (term for term in query.terms if statistics.frequency(term)),
        key=lambda term: (term not in identifiers, statistics.frequency(term), term),
    )[:MAX_MATCHED_TERMS]
    rare: list[str] = []
    frequent: list[str] = []
    room = limit
    for term in known:
        room_after = room - statistics.frequency(term)
        if room_after >= 0:
            rare.append(term)
            room = room_after
        else:
            frequent.append(term)
    frequent.sort(key=lambda term: (statistics.frequency(term), term))
    return tuple(_levels(rare, frequent, known))


def _levels(rare: Sequence[str], frequent: Sequence[str], known: Sequence[str]) -> Iterator[TermGroups]:
    if rare:
        yield _any(rare)
    if len(frequent) > 1:
        yield (tuple(frequent),)
    if len(frequent) > 2:
        yield tuple(combinations(frequent[:PAIRED_TERMS], 2))
    if frequent:
        yield _any(known)


def _any(terms: Sequence[str]) -> TermGroups:
    return tuple((term,) for term in terms)


def score_rows(
    rows: Sequence[SearchRow], query: QueryTerms, statistics: CollectionStatistics, *, k1: float, b: float
) -> tuple[Candidate, ...]:
    """BM25 with the phrase bonus for each row, best first, ties by id."""
    idf = {term: statistics.idf(term) for term in query.terms}
    pair_weights = {pair: idf[pair[0]] + idf[pair[1]] for pair in query.pairs}
    pair_total = sum(pair_weights.values())
    candidates = []
    for row in rows:
        padded = f" {row.search_text} "
        frequencies = Counter(filter(idf.__contains__, row.search_text.split(" ")))
        norm = k1 * (1 - b + b * row.term_count / statistics.average_terms)
        score = sum(idf[term] * count * (k1 + 1) / (count + norm) for term, count in frequencies.items())
        if pair_total:
            together = sum(weight for pair, weight in pair_weights.items() if stand_together(pair, padded, frequencies))
            score *= 1 + PHRASE_BONUS * together / pair_total
        exact = any(identifier.occurs_in(padded, frequencies) for identifier in query.identifiers)
        candidates.append(Candidate(chunk_id=row.chunk_id, score=score, exact=exact))
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk_id)))
