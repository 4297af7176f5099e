"""How good the evidence is (after CRAG, Yan et al. 2024), from two signals that fail in different ways.

The top rerank score, and the lexical coverage: the best share, over the first passages, of the query's significant
terms, long terms counting more. Both strong is HIGH, both weak is LOW, all else AMBIGUOUS: a high score whose rare
entity is missing goes down to it, a low score that has the entity comes up to it. Identifiers are such entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import RetrievedChunk
from docmind.text import find_identifiers, segment, significant_terms

Tier = Literal["HIGH", "AMBIGUOUS", "LOW"]
GRADED_PASSAGES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The tier of the evidence and the signals behind it; `reason` is a short code for logs and traces."""

    tier: Tier
    top_score: float
    avg_score: float
    lex_coverage: float
    kb_entity_weak: bool
    reason: str


def grade(query: str, chunks: Sequence[RetrievedChunk], config: ConfigSnapshot) -> Grade:
    """Grades the passages, best first. No passage is LOW."""
    if not chunks:
        return Grade(
            tier="LOW", top_score=0.0, avg_score=0.0, lex_coverage=0.0, kb_entity_weak=True, reason="no_evidence"
        )
    scores = [chunk.rerank_score for chunk in chunks]
    top_score = max(scores)
    coverage, has_identifiers = _lexical_evidence(query, chunks[:GRADED_PASSAGES])
    entity_weak = coverage < config.grader_coverage_threshold or not has_identifiers
    strong = top_score >= config.grader_high_threshold
    weak = top_score < config.grader_low_threshold
    tier, reason = _judge(strong=strong, weak=weak, entity_weak=entity_weak, by_score=config.grader_mode == "disabled")
    return Grade(
        tier=tier,
        top_score=top_score,
        avg_score=sum(scores) / len(scores),
        lex_coverage=coverage,
        kb_entity_weak=entity_weak,
        reason=reason,
    )


def _judge(*, strong: bool, weak: bool, entity_weak: bool, by_score: bool) -> tuple[Tier, str]:
    if strong and (by_score or not entity_weak):
        return "HIGH", "score_high" if by_score else "score_high_entity_present"
    if weak and (by_score or entity_weak):
        return "LOW", "score_low" if by_score else "score_low_entity_missing"
    if strong:
        return "AMBIGUOUS", "score_high_entity_missing"
    if weak:
        return "AMBIGUOUS", "score_low_entity_present"
    return "AMBIGUOUS", "score_between"


def _lexical_evidence(query: str, chunks: Sequence[RetrievedChunk]) -> tuple[float, bool]:
    """The best coverage of one passage, and whether every identifier of the query is in some passage."""
    wanted = significant_terms(query)
    total = sum(map(len, wanted))
    present = [frozenset(segment(f"{chunk.heading_path}\n{chunk.content}")) for chunk in chunks]
    if not total:
        return 0.0, True
    coverage = max(sum(len(term) for term in wanted if term in terms) / total for terms in present)
    everywhere = frozenset().union(*present)
    identifiers = map(str.casefold, find_identifiers(query))
    return coverage, all(not everywhere.isdisjoint((name, name.lstrip("-./"))) for name in identifiers)
