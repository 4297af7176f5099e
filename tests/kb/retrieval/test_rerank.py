from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from apps.kb.retrieval.query import CollectionStatistics, parse_query
from apps.kb.retrieval.rerank import rerank
from apps.kb.retrieval.types import RetrievedChunk
from docmind.text import encode_term
from tests.kb.retrieval.corpus import passage


def statistics(**frequencies: int) -> CollectionStatistics:
    return CollectionStatistics(
        chunk_count=1000,
        term_total=20_000,
        document_frequencies={encode_term(term): count for term, count in frequencies.items()},
    )


def order(
    query: str, *chunks: RetrievedChunk, counts: CollectionStatistics | None = None, top_k: int = 8
) -> list[int | None]:
    ranked = rerank(chunks, parse_query(query), counts or statistics(), top_k=top_k)
    return [chunk.chunk_id for chunk in ranked]


def test_it_prefers_rare_terms_to_frequent_ones() -> None:
    counts = statistics(配置=900, 熔断=4)
    assert order("熔断配置", passage(1, "配置文件的配置"), passage(2, "熔断以后重试"), counts=counts) == [2, 1]


def test_it_prefers_the_identifier_as_it_is_written_to_its_parts() -> None:
    scattered = passage(1, "max 连接，pool 的 size，还有 max size pool")
    exact = passage(2, "maxPoolSize 是连接池的上限")
    assert order("maxPoolSize 怎么设置", scattered, exact) == [2, 1]


def test_it_prefers_words_that_stand_together() -> None:
    assert order(
        "connection pool", passage(1, "pool or a free connection"), passage(2, "a free connection pool or")
    ) == [2, 1]


def test_it_counts_the_headings() -> None:
    beside = passage(1, "默认值是 8080，监听端口。", heading_path="常见问题 > 其他")
    under = passage(2, "默认值是 8080，监听端口。", heading_path="服务 > 监听端口")
    assert order("监听端口", beside, under) == [2, 1]


def test_it_lets_the_cosine_decide_where_the_words_do_not() -> None:
    near, far = passage(1, "无关的话", cosine=0.80), passage(2, "另外的话", cosine=0.88)
    assert order("怎样安装", near, far) == [2, 1]


def test_it_scores_the_best_passage_by_the_share_of_the_query_that_is_covered() -> None:
    [answer] = rerank([passage(1, "端口 拆分")], parse_query("端口 拆分"), statistics(), top_k=8)
    assert answer.rerank_score == 1.0
    [half] = rerank([passage(1, "端口")], parse_query("端口 拆分"), statistics(), top_k=8)
    assert math.isclose(half.rerank_score, 0.5)
    [nothing] = rerank([passage(1, "others", cosine=0.9)], parse_query("端口 拆分"), statistics(), top_k=8)
    assert 0 < nothing.rerank_score < 0.2


def test_it_keeps_passages_not_children() -> None:
    siblings = [passage(number, "端口 拆分", parent_id=7) for number in (1, 2)]
    other = passage(3, "端口", parent_id=8)
    assert order("端口 拆分", *siblings, other, top_k=2) == [1, 3]


def test_it_judges_a_passage_without_stored_terms_by_its_text() -> None:
    page = replace(passage(2, "端口 拆分"), chunk_id=None, kind="web", child_terms="", fused=None)
    ranked = rerank([passage(1, "端口", cosine=0.9), page], parse_query("端口 拆分"), statistics(), top_k=8)
    assert [chunk.kind for chunk in ranked] == ["web", "kb"]


def test_it_takes_nothing_and_queries_without_terms() -> None:
    assert order("端口") == []
    assert order("？！", passage(1, "端口"), passage(2, "拆分")) == [1, 2]


@given(
    query=st.text(max_size=30),
    texts=st.lists(st.text(min_size=1, max_size=40), max_size=8),
    cosine=st.one_of(st.none(), st.floats(-1, 1)),
)
def test_it_scores_between_0_and_1_in_falling_order(query: str, texts: list[str], cosine: float | None) -> None:
    chunks = [passage(number, text, cosine=cosine) for number, text in enumerate(texts)]
    ranked = rerank(chunks, parse_query(query), statistics(), top_k=8)
    scores = [chunk.rerank_score for chunk in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
    assert {chunk.chunk_id for chunk in ranked} == set(range(len(texts)))
