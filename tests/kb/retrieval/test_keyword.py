"""Keyword search on whichever database the tests run on: candidates, scores and order are the same on each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.models import KnowledgeBase
from apps.kb.retrieval.keyword import PHRASE_BONUS, plan_levels, search_keywords
from apps.kb.retrieval.query import CollectionStatistics, parse_query, read_statistics
from apps.kb.retrieval.types import Candidate
from docmind.text import encode_term, segment, significant_terms
from tests.factories import KnowledgeBaseFactory
from tests.kb.retrieval.corpus import add_chunk, add_document

CONFIG = ConfigSnapshot()
TEXTS = (
    "数据库拆分之前先停止写入，拆分完成后再恢复。",
    "服务默认监听端口 8080，端口可以在配置文件里修改。",
    "设置 server.shutdown=graceful 以后，Spring Boot 优雅停机会等待请求完成。",
    "错误 E1205 表示等待锁超时，请重试事务。",
    "连接池的 maxPoolSize 默认是 10，不要超过数据库允许的连接数。",
    "The connection pool rejects a request when no connection is free within the timeout.",
    "启动参数 --max-old-space-size=4096 调整 Node.js 的内存上限。",
    "缓存命中率低的时候，先检查键的过期时间。",
)


@pytest.fixture
def kb(transactional_db: None) -> KnowledgeBase:
    document = add_document(KnowledgeBaseFactory())
    for text in TEXTS:
        add_chunk(document, text, heading_path="运维手册 > 配置")
    return document.knowledge_base


def run(text: str, *kbs: KnowledgeBase, config: ConfigSnapshot = CONFIG) -> tuple[Candidate, ...]:
    query, ids = parse_query(text), [kb.pk for kb in kbs]
    return search_keywords(query, read_statistics(query.terms, ids), kb_ids=ids, document_ids=None, config=config)


def contents(kb: KnowledgeBase, candidates: Sequence[Candidate]) -> list[str]:
    by_id = dict(kb.chunks.values_list("id", "content"))
    return [by_id[candidate.chunk_id] for candidate in candidates]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("拆分", 0),
        ("端口", 1),
        ("锁", 3),
        ("server.shutdown", 2),
        ("Spring Boot 优雅停机", 2),
        ("E1205", 3),
        ("e1205 是什么意思？", 3),
        ("maxPoolSize", 4),
        ("MAXPOOLSIZE", 4),
        ("ｍａｘＰｏｏｌＳｉｚｅ", 4),
        ("connection timeout", 5),
        ("--max-old-space-size", 6),
    ],
)
def test_it_finds_words_and_identifiers(kb: KnowledgeBase, query: str, place: int) -> None:
    assert contents(kb, run(query, kb))[:1] == [TEXTS[place]]


def expected_scores(query: str, kb: KnowledgeBase) -> dict[int, float]:
    """BM25 with the phrase bonus, written down naively over the chunks themselves."""
    chunks = [
        (chunk.pk, segment("\n".join([*chunk.heading_path.split(" > "), chunk.content])))
        for chunk in kb.chunks.filter(live=True)
    ]
    average = sum(len(terms) for _, terms in chunks) / len(chunks)
    wanted = significant_terms(query)

    def idf(term: str) -> float:
        frequency = sum(term in terms for _, terms in chunks)
        return math.log(1 + (len(chunks) - frequency + 0.5) / (frequency + 0.5))

    sequence = segment(query)
    pairs = {(a, b) for a, b in pairwise(sequence) if a != b and a in wanted and b in wanted}
    scores = {}
    for chunk_id, terms in chunks:
        score = 0.0
        for term in wanted:
            count = terms.count(term)
            score += idf(term) * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(terms) / average))
        neighbours = set(pairwise(terms))
        if pairs:
            held = sum(idf(a) + idf(b) for a, b in pairs if (a, b) in neighbours)
            score *= 1 + PHRASE_BONUS * held / sum(idf(a) + idf(b) for a, b in pairs)
        if score:
            scores[chunk_id] = score
    return scores


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "query",
    [
        "数据库拆分",
        "端口配置文件修改",
        "连接池 maxPoolSize 默认连接数",
        "等待锁超时 E1205",
        "connection pool timeout request",
        "配置",
        "运维手册里的 server.shutdown",
        "数据库 数据库 数据库",
    ],
)
def test_it_scores_as_the_formula_says(kb: KnowledgeBase, query: str) -> None:
    expected = expected_scores(query, kb)
    found = run(query, kb)
    assert [candidate.chunk_id for candidate in found] == sorted(expected, key=lambda key: (-expected[key], key))
    for candidate in found:
        assert candidate.score == pytest.approx(expected[candidate.chunk_id], abs=1e-9)


@pytest.mark.django_db(transaction=True)
def test_it_takes_statistics_from_all_knowledge_bases_searched_and_from_no_other(kb: KnowledgeBase) -> None:
    other, unseen = KnowledgeBaseFactory(), KnowledgeBaseFactory()
    for its in (other, unseen):
        add_chunk(add_document(its), "端口 端口")
    both = read_statistics(parse_query("端口").terms, [kb.pk, other.pk])
    assert both.chunk_count == len(TEXTS) + 1
    assert both.frequency(encode_term("端口")) == 2
    assert {hit.chunk_id for hit in run("端口", kb, other)} >= set(other.chunks.values_list("id", flat=True))
    assert set(unseen.chunks.values_list("id", flat=True)).isdisjoint(hit.chunk_id for hit in run("端口", kb, other))


@pytest.mark.django_db(transaction=True)
def test_it_marks_what_holds_an_identifier_of_the_query(kb: KnowledgeBase) -> None:
    document = kb.documents.get()
    longer = add_chunk(document, "spring.datasource.hikari.maximum-pool-size 是上限。")
    found = {hit.chunk_id: hit.exact for hit in run("spring.datasource.hikari 数据库", kb)}
    assert found.pop(longer.pk)
    assert found
    assert not any(found.values())


@pytest.mark.django_db(transaction=True)
def test_it_takes_few_statements_whatever_it_finds(
    kb: KnowledgeBase, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(5):
        run(
            "配置 端口 数据库 连接 缓存 E1205 request " + "配置文件" * 200,
            kb,
            config=ConfigSnapshot(retrieval_bm25_candidates=10),
        )


@pytest.mark.django_db(transaction=True)
def test_it_keeps_the_rare_terms_when_candidates_are_limited() -> None:
    document = add_document(KnowledgeBaseFactory())
    for _ in range(15):
        add_chunk(document, "默认 配置")
    both = [add_chunk(document, "默认 端口 配置").pk for _ in range(12)]
    rare = add_chunk(document, "默认 配置 E1205").pk
    config = ConfigSnapshot(retrieval_bm25_candidates=10)
    found = [hit.chunk_id for hit in run("默认 端口 E1205 配置", document.knowledge_base, config=config)]
    assert found == [rare, *both[:9]]


@pytest.mark.django_db(transaction=True)
def test_it_finds_the_identifier_at_the_end_of_a_long_paste(kb: KnowledgeBase) -> None:
    noise = " ".join("".join(letters) for letters in product("bcdfghjklm", "aeiou", "npqrstvwxz"))
    assert contents(kb, run(f"{noise} {noise.title()} maxPoolSize", kb))[:1] == [TEXTS[4]]
    identifiers = " ".join(f"x{number}{number}y" for number in range(900, 1000))
    assert contents(kb, run(f"{identifiers} maxPoolSize", kb))[:1] == [TEXTS[4]]


HOSTILE = (
    "",
    " ",
    "a",
    "锁",
    "。！？，、",
    "的 了 是",
    "the of and",
    "🙂🚀",
    "\x00\ud800",
    "端口 OR 1=1; DROP TABLE kb_chunk_search --",
    '"端口" AND NOT (拆分) NEAR(a, 3) * ^ - + ~ < > @',
    "search_text:端口 {a b} : c",
    "kb_id in [1,2] or id > 0 and tags like '%'",
    "%s %(a)s {} \\ ' \" ` ;",
    "配置端口" * 1250,
    "a." * 2500,
    "x" * 5000,
)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", HOSTILE)
def test_it_takes_any_query(kb: KnowledgeBase, query: str) -> None:
    ids = set(kb.chunks.values_list("id", flat=True))
    assert {hit.chunk_id for hit in run(query, kb)} <= ids


@pytest.mark.django_db(transaction=True)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=200))
@example(query='端口" OR "拆分')
def test_it_sends_nothing_but_encoded_terms_to_the_engine(kb: KnowledgeBase, query: str) -> None:
    for hit in run(f"端口 {query}", kb):
        assert hit.score > 0


def statistics(**frequencies: int) -> CollectionStatistics:
    return CollectionStatistics(
        chunk_count=1000,
        term_total=100_000,
        document_frequencies={encode_term(term): count for term, count in frequencies.items()},
    )


def plan(query: str, limit: int, **frequencies: int) -> list[list[tuple[str, ...]]]:
    levels = plan_levels(parse_query(query), statistics(**frequencies), limit)
    return [[tuple(term.removeprefix("z7a") for term in group) for group in level] for level in levels]


def test_it_asks_for_rare_terms_alone_while_they_fit() -> None:
    assert plan("alpha beta gamma", 400, alpha=300, beta=20, gamma=3) == [[("gamma",), ("beta",), ("alpha",)]]


def test_it_asks_for_frequent_terms_together_before_apart() -> None:
    assert plan("alpha beta gamma delta", 400, alpha=900, beta=500, gamma=600, delta=7) == [
        [("delta",)],
        [("beta", "gamma", "alpha")],
        [("beta", "gamma"), ("beta", "alpha"), ("gamma", "alpha")],
        [("delta",), ("beta",), ("gamma",), ("alpha",)],
    ]


def test_it_drops_terms_that_no_chunk_holds() -> None:
    assert plan("alpha beta", 400, beta=5) == [[("beta",)]]
    assert plan("alpha beta", 400) == []


def test_it_gives_identifiers_their_place_before_rarer_words() -> None:
    levels = plan("alpha beta E1205", 400, alpha=100, beta=100, e1205=390)
    assert levels[0] == [("e1205",)]
