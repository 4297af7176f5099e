from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.chat.pipeline.routing import route
from apps.chat.pipeline.understanding import understand


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("MySQL 和 SQLite 有什么区别？", "COMPARISON"),
        ("Compare Redis vs Memcached", "COMPARISON"),
        ("总结一下部署文档", "SUMMARY"),
        ("启动时报错 E1205 该查哪里", "TROUBLESHOOTING"),
        ("The server fails to start", "TROUBLESHOOTING"),
        ("DocMind 怎么配置 MySQL？", "HOW_TO"),
        ("How do I configure the port?", "HOW_TO"),
        ("什么是向量库？", "DEFINITION"),
        ("端口是多少", "LOOKUP"),
        ("端口", "GENERAL"),
    ],
)
def test_it_reads_the_intent(question: str, intent: str) -> None:
    assert understand(question).intent == intent


@pytest.mark.parametrize(
    ("question", "complexity"),
    [
        ("默认端口是多少？", "SIMPLE"),
        ("What is the default port?", "SIMPLE"),
        ("对比 IVF 和 HNSW", "MEDIUM"),
        ("IVF vs HNSW", "MEDIUM"),
        ("A 和 B 分别是什么", "MEDIUM"),
        ("端口是多少？怎么改？", "MEDIUM"),
        ("对比 A 和 B 的优缺点，端口分别是多少？怎么改？", "COMPLEX"),
        ("服务 server.vs 的端口", "SIMPLE"),
    ],
)
def test_several_focuses_raise_the_complexity(question: str, complexity: str) -> None:
    assert understand(question).complexity == complexity


@pytest.mark.parametrize(
    ("question", "specificity"),
    [
        ("server.shutdown 怎么用", "PRECISE"),
        ("E1205 是什么错误", "PRECISE"),
        ("maxPoolSize 默认多少", "PRECISE"),
        ("“端口占用” 怎么处理", "PRECISE"),
        ("微服务架构有什么优势", "FUZZY"),
        ("端口怎么配置", "NORMAL"),
    ],
)
def test_identifiers_make_a_question_precise(question: str, specificity: str) -> None:
    assert understand(question).specificity == specificity


def test_it_notices_time_memory_and_what_to_remember() -> None:
    assert understand("最新版本有哪些变化").time_aware
    assert not understand("默认端口是多少").time_aware
    assert understand("我之前说过的偏好是什么").memory_aware
    assert understand("请记住：我用 MariaDB").memory_write_hints == ("我用 MariaDB",)


def test_a_pronoun_with_nothing_to_search_for_is_ambiguous() -> None:
    assert understand("它是什么？").is_ambiguous
    assert not understand("这个服务的数据库连接池大小如何调整").is_ambiguous


def test_the_planner_adds_keywords_for_precise_and_ambiguous_questions() -> None:
    assert route(understand("端口怎么配置")).tools == ("doc_search",)
    for question in ("maxPoolSize 怎么配置", "它是什么？"):
        routing = route(understand(question))
        assert routing.mode == "RULE_PLANNER"
        assert routing.tools == ("doc_search", "keyword_search")
        assert routing.reason


@settings(deadline=None)
@given(st.text(max_size=300))
def test_every_text_has_a_classification(text: str) -> None:
    classification = understand(text)
    assert classification.scope == "KNOWLEDGE_QUERY"
    assert classification.rewritten == " ".join(text.split())
