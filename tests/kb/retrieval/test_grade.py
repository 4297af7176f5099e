from __future__ import annotations

import pytest

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.grade import grade
from tests.kb.retrieval.corpus import passage

CONFIG = ConfigSnapshot(grader_high_threshold=0.7, grader_low_threshold=0.35, grader_coverage_threshold=0.5)


@pytest.mark.parametrize(
    ("query", "text", "score", "tier", "weak"),
    [
        ("端口怎么修改", "修改端口要重启。", 0.9, "HIGH", False),
        ("E1205 是什么", "错误 E1205 表示锁超时。", 0.9, "HIGH", False),
        ("E1206 是什么", "错误 E1205 表示锁超时。", 0.9, "AMBIGUOUS", True),
        ("端口怎么修改", "完全无关的话。", 0.9, "AMBIGUOUS", True),
        ("E1205 是什么", "错误 E1205 表示锁超时。", 0.2, "AMBIGUOUS", False),
        ("端口怎么修改", "修改端口要重启。", 0.5, "AMBIGUOUS", False),
        ("端口怎么修改", "完全无关的话。", 0.2, "LOW", True),
    ],
)
def test_it_weighs_the_score_against_the_words(query: str, text: str, score: float, tier: str, weak: bool) -> None:
    result = grade(query, [passage(1, text, score=score)], CONFIG)
    assert (result.tier, result.kb_entity_weak, result.top_score) == (tier, weak, score)


def test_it_looks_at_the_first_three_passages_only() -> None:
    fillers = [passage(number, "完全无关的话。", score=0.8 - number / 10) for number in range(3)]
    answer = passage(9, "修改端口要重启。", score=0.1)
    assert grade("端口怎么修改", [*fillers, answer], CONFIG).kb_entity_weak
    result = grade("端口怎么修改", [*fillers[:2], answer], CONFIG)
    assert (result.lex_coverage, result.kb_entity_weak) == (1.0, False)
    assert result.avg_score == pytest.approx((0.8 + 0.7 + 0.1) / 3)


def test_it_can_go_by_the_score_alone() -> None:
    config = ConfigSnapshot(grader_mode="disabled")
    assert grade("端口", [passage(1, "无关的话", score=0.9)], config).tier == "HIGH"
    assert grade("端口", [passage(1, "端口", score=0.1)], config).tier == "LOW"


def test_it_calls_no_evidence_low() -> None:
    result = grade("端口", [], CONFIG)
    assert (result.tier, result.reason, result.kb_entity_weak) == ("LOW", "no_evidence", True)


def test_it_takes_a_query_without_terms() -> None:
    assert grade("？！", [passage(1, "端口", score=0.1)], CONFIG).tier == "LOW"
