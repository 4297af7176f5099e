"""Document frequencies and lengths of a knowledge base, for BM25. Only live children count.

All functions join the caller's transaction. Terms are written in sorted order and the knowledge base's row is locked
first, so that two publications into one knowledge base wait for each other instead of deadlocking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import connection
from django.db.models import F

from apps.kb.models import KnowledgeBase, TermStat

BATCH_TERMS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TermDelta:
    """A change of the statistics: chunks, terms with repeats, and for each encoded term the chunks that hold it."""

    chunks: int
    terms: int
    frequencies: Counter[str]

    def minus(self, other: TermDelta) -> TermDelta:
        """This added and `other` removed; frequencies may be negative, those that cancel out are left away."""
        difference = Counter(self.frequencies)
        difference.subtract(other.frequencies)
        return TermDelta(
            chunks=self.chunks - other.chunks,
            terms=self.terms - other.terms,
            frequencies=Counter({term: count for term, count in difference.items() if count}),
        )


def count_terms(term_lists: Iterable[Sequence[str]]) -> TermDelta:
    """One list of encoded terms, with repeats, a chunk."""
    chunks, terms, frequencies = 0, 0, Counter[str]()
    for listed in term_lists:
        chunks += 1
        terms += len(listed)
        frequencies.update(set(listed))
    return TermDelta(chunks=chunks, terms=terms, frequencies=frequencies)


def add(kb_id: int, term_lists: Iterable[Sequence[str]]) -> None:
    """Counts these chunks in."""
    apply_delta(kb_id, count_terms(term_lists))


def remove(kb_id: int, term_lists: Iterable[Sequence[str]]) -> None:
    """Counts these chunks out."""
    apply_delta(kb_id, count_terms(()).minus(count_terms(term_lists)))


def apply_delta(kb_id: int, delta: TermDelta) -> None:
    """Adds a change, whose numbers may be negative, to the statistics of a knowledge base."""
    KnowledgeBase.objects.filter(pk=kb_id).update(
        chunk_count=F("chunk_count") + delta.chunks, term_total=F("term_total") + delta.terms
    )
    ordered = sorted(delta.frequencies.items())
    _write(_INCREASE, [(kb_id, term, count) for term, count in ordered if count > 0])
    lowered = [(kb_id, term, -count) for term, count in ordered if count < 0]
    _write(_DECREASE, lowered)
    names = iter([term for _kb_id, term, _count in lowered])
    while batch := list(islice(names, BATCH_TERMS)):
        TermStat.objects.filter(knowledge_base_id=kb_id, term__in=batch, document_frequency=0).delete()


_INSERT = "INSERT INTO kb_term_stat (knowledge_base_id, term, document_frequency) VALUES (%s, %s, %s) "
_INCREASE = {
    "sqlite": _INSERT
    + "ON CONFLICT (knowledge_base_id, term) DO UPDATE"
    + " SET document_frequency = document_frequency + excluded.document_frequency",
    "mysql": _INSERT + "ON DUPLICATE KEY UPDATE document_frequency = document_frequency + VALUES(document_frequency)",
}
_DECREASE = {
    "sqlite": _INSERT
    + "ON CONFLICT (knowledge_base_id, term) DO UPDATE"
    + " SET document_frequency = max(document_frequency - excluded.document_frequency, 0)",
    "mysql": _INSERT
    + "ON DUPLICATE KEY UPDATE document_frequency ="
    + " document_frequency - LEAST(document_frequency, VALUES(document_frequency))",
}
"""Both are one statement a batch: the drivers send many rows of an INSERT at once, but not of an UPDATE."""


def _write(statement: dict[str, str], rows: Sequence[tuple[int, str, int]]) -> None:
    with connection.cursor() as cursor:
        for start in range(0, len(rows), BATCH_TERMS):
            cursor.executemany(statement[connection.vendor], rows[start : start + BATCH_TERMS])
