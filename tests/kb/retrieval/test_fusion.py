from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.fusion import FusionWeights, choose_weights, fuse, select, select_loaded
from apps.kb.retrieval.types import Candidate, FusedCandidate
from tests.kb.retrieval.corpus import passage

EQUAL = FusionWeights(vector=0.5, keyword=0.5, k=60)
rankings = st.lists(st.integers(1, 40), unique=True, max_size=20)


def ranking(ids: Sequence[int], exact: Sequence[int] = ()) -> list[Candidate]:
    return [
        Candidate(chunk_id=chunk_id, score=1.0 / place, exact=chunk_id in exact)
        for place, chunk_id in enumerate(ids, 1)
    ]


def test_it_adds_weighted_reciprocal_ranks() -> None:
    weights = FusionWeights(vector=0.3, keyword=0.7, k=40)
    first, second, third = fuse(ranking([1, 2]), ranking([2, 3]), weights)
    assert (first.chunk_id, first.vector_rank, first.keyword_rank) == (2, 2, 1)
    assert first.score == pytest.approx(0.3 / 42 + 0.7 / 41)
    assert second.chunk_id == 3
    assert second.score == pytest.approx(0.7 / 42)
    assert (third.chunk_id, third.keyword_rank, third.keyword_score) == (1, None, None)
    assert third.vector_score == 1.0


def test_it_trusts_keywords_for_precise_questions_and_vectors_for_fuzzy_ones() -> None:
    config = ConfigSnapshot()
    assert choose_weights("PRECISE", config) == FusionWeights(vector=1 - 0.7, keyword=0.7, k=40)
    assert choose_weights("FUZZY", config) == FusionWeights(vector=0.6, keyword=1 - 0.6, k=60)
    assert choose_weights("NORMAL", config) == EQUAL


@given(vector=rankings, keyword=rankings)
def test_it_loses_nothing_and_orders_by_score_then_id(vector: list[int], keyword: list[int]) -> None:
    fused = fuse(ranking(vector), ranking(keyword), EQUAL)
    assert {candidate.chunk_id for candidate in fused} == {*vector, *keyword}
    assert list(fused) == sorted(fused, key=lambda candidate: (-candidate.score, candidate.chunk_id))


@given(ids=rankings)
def test_it_keeps_the_order_of_the_only_search(ids: list[int]) -> None:
    assert [candidate.chunk_id for candidate in fuse([], ranking(ids), EQUAL)] == ids
    assert [candidate.chunk_id for candidate in fuse(ranking(ids), [], EQUAL)] == ids


def test_it_keeps_exact_hits_that_fusion_put_at_the_end() -> None:
    fused = fuse(ranking([1, 2, 3, 4, 5, 6]), ranking([1, 2, 3, 4, 5, 9], exact=[9]), EQUAL)
    assert [candidate.chunk_id for candidate in select(fused, 4)] == [1, 2, 3, 9]


def test_it_leaves_half_of_the_places_to_others_when_everything_is_exact() -> None:
    fused = fuse(
        ranking([7, 8]), ranking(range(10, 30), exact=range(10, 30)), FusionWeights(vector=0.9, keyword=0.1, k=60)
    )
    assert [candidate.chunk_id for candidate in select(fused, 4)] == [7, 8, 10, 11]


@given(vector=rankings, keyword=rankings, exact=rankings, limit=st.integers(1, 30))
def test_it_selects_as_many_as_there_are_up_to_the_limit(
    vector: list[int], keyword: list[int], exact: list[int], limit: int
) -> None:
    fused = fuse(ranking(vector), ranking(keyword, exact), EQUAL)
    selected = select(fused, limit)
    assert len(selected) == min(limit, len(fused))
    assert [candidate for candidate in fused if candidate in selected] == list(selected)


def test_it_selects_again_among_the_rows_that_were_loaded() -> None:
    chunks = [passage(chunk_id, "text") for chunk_id in (1, 2, 3)]
    assert [chunk.chunk_id for chunk in select_loaded(chunks, 2)] == [1, 2]
    assert select_loaded([], 2) == ()
    assert isinstance(chunks[0].fused, FusedCandidate)
