"""What keyword search and reranking need to know of a query: its terms, and how rare each is in what is searched."""

from __future__ import annotations

import math
from collections.abc import Collection, Container
from dataclasses import dataclass
from itertools import islice, pairwise

from django.db.models import F, IntegerField, Sum, Value

from apps.kb.models import KnowledgeBase, TermStat
from docmind.text import encode_term, find_identifiers, segment, significant_terms

MAX_QUERY_TERMS = 1024
"""Distinct terms that count; a pasted log does not make a query slow."""
MAX_PAIRS = 512
MAX_IDENTIFIERS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """A name, key, code or version of the query. `parts` are its pieces in order, empty if it has just one."""

    term: str
    parts: tuple[str, ...]

    def occurs_in(self, padded_terms: str, present: Container[str]) -> bool:
        """Whether the terms, with a space at either end, hold the identifier whole, or its parts in a row.

        `present`: those of them that are terms of the query.
        """
        return self.term in present or (bool(self.parts) and f" {' '.join(self.parts)} " in padded_terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """A query in encoded terms. `terms` are distinct and without stop words; `pairs` stood side by side."""

    terms: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    identifiers: tuple[Identifier, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionStatistics:
    """Live children, their terms in all, and in how many of them each term of the query occurs."""

    chunk_count: int
    term_total: int
    document_frequencies: dict[str, int]

    @property
    def average_terms(self) -> float:
        return max(1.0, self.term_total / self.chunk_count) if self.chunk_count else 1.0

    def frequency(self, term: str) -> int:
        return self.document_frequencies.get(term, 0)

    def idf(self, term: str) -> float:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), never negative even where the counts lag behind."""
        frequency = self.frequency(term)
        count = max(self.chunk_count, frequency)
        return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def parse_query(text: str) -> QueryTerms:
    """The encoded terms of a query, identifiers first; none for a query without letters or digits."""
    identifiers = tuple(dict.fromkeys(map(_identifier, find_identifiers(text)[:MAX_IDENTIFIERS])))
    named = (identifier.term for identifier in identifiers)
    distinct = dict.fromkeys((*named, *map(encode_term, significant_terms(text))))
    terms = tuple(islice(distinct, MAX_QUERY_TERMS))
    kept = frozenset(terms)
    pairs = dict.fromkeys(
        pair for pair in pairwise(map(encode_term, segment(text))) if kept.issuperset(pair) and pair[0] != pair[1]
    )
    return QueryTerms(terms=terms, pairs=tuple(islice(pairs, MAX_PAIRS)), identifiers=identifiers)


def _identifier(identifier: str) -> Identifier:
    whole, *parts = segment(identifier) or [identifier.casefold()]
    return Identifier(term=encode_term(whole), parts=tuple(map(encode_term, parts)) if len(parts) > 1 else ())


def stand_together(pair: tuple[str, str], padded_terms: str, present: Container[str]) -> bool:
    """Whether the second term follows the first at once; arguments as for `Identifier.occurs_in`."""
    first, second = pair
    return first in present and second in present and f" {first} {second} " in padded_terms


def read_statistics(terms: Collection[str], kb_ids: Collection[int]) -> CollectionStatistics:
    """The statistics of the knowledge bases taken together, in one statement."""
    totals = (
        KnowledgeBase.objects.filter(id__in=kb_ids)
        .order_by()
        .values(label=Value(""))
        .annotate(first=Sum("chunk_count"), second=Sum("term_total"))
        .values_list("label", "first", "second")
    )
    frequencies = (
        TermStat.objects.filter(knowledge_base_id__in=kb_ids, term__in=terms, document_frequency__gt=0)
        .order_by()
        .values(label=F("term"))
        .annotate(first=Sum("document_frequency"), second=Value(0, output_field=IntegerField()))
        .values_list("label", "first", "second")
    )
    found = {label: (int(first), int(second)) for label, first, second in totals.union(frequencies, all=True)}
    chunk_count, term_total = found.pop("", (0, 0))
    return CollectionStatistics(
        chunk_count=chunk_count,
        term_total=term_total,
        document_frequencies={label: first for label, (first, _) in found.items()},
    )
