"""The answer without a model: the passages' own sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.aiconfig.providers.extractive import PIECE_CHARS, ExtractiveChat, extract_answer
from apps.aiconfig.providers.extractive_units import cut_into_units
from apps.aiconfig.providers.types import ChatRequest, PromptPassage, StreamEnd, TextDelta

MYSQL = """# 配置 MySQL
DocMind 默认使用 SQLite。要改用 MySQL，请设置环境变量 `DATABASE_URL`：

```sh
export DATABASE_URL=mysql://user:pw@host:3306/docmind
```

数据库必须使用 utf8mb4 字符集。MariaDB 需要 10.11 以上版本[3]。
"""
REFERENCE = """## Ports and errors
| key | default | meaning |
|---|---|---|
| server.port | 8000 | HTTP port |
| server.shutdown | graceful | How the server stops |

The lock can be shared. The error E1205 means that a lock wait timed out. Retry the transaction.

什么是分块？
分块是把文档切成小段的过程，每段约 400 字。

- 拆分：把一个知识库分成两个
- 合并：把两个知识库合成一个
"""
PASSAGES = (PromptPassage(index=1, text=MYSQL), PromptPassage(index=2, text=REFERENCE))


def answer(question: str, passages: tuple[PromptPassage, ...] = PASSAGES) -> str:
    return extract_answer(question, passages)


def test_it_keeps_code_with_the_line_that_leads_to_it() -> None:
    text = answer("怎么配置 MySQL？")
    assert "要改用 MySQL，请设置环境变量 `DATABASE_URL`：[1]" in text
    assert "```sh\nexport DATABASE_URL=mysql://user:pw@host:3306/docmind\n```" in text


def test_it_keeps_a_row_with_the_heading_of_its_table() -> None:
    assert answer("server.shutdown 是什么意思？") == (
        "| key | default | meaning |\n|---|---|---|\n| server.shutdown | graceful | How the server stops [2] |"
    )


def test_it_keeps_the_lines_of_indented_code_apart() -> None:
    (unit,) = cut_into_units(1, "    make up\n    make test\n")
    assert unit.kind == "code"
    assert unit.text == "```\nmake up\nmake test\n```"


def test_the_sentence_with_the_identifier_wins() -> None:
    assert answer("What does error E1205 of the lock mean?").startswith(
        "The error E1205 means that a lock wait timed out. [2]"
    )


def test_a_question_in_the_text_leads_to_its_answer() -> None:
    assert answer("什么是分块") == "分块是把文档切成小段的过程，每段约 400 字。[2]"


def test_two_character_words_find_their_list_item() -> None:
    assert answer("拆分") == "- 拆分：把一个知识库分成两个[2]"


def test_citations_of_the_source_do_not_become_its_own() -> None:
    assert "[3]" not in answer("MariaDB 需要什么版本？")
    assert "MariaDB 需要 10.11 以上版本" in answer("MariaDB 需要什么版本？")


def test_a_repeated_sentence_is_shown_once() -> None:
    same = tuple(PromptPassage(index=index, text="超时时间是 30 秒。") for index in (1, 2, 3))
    assert answer("超时时间是多少？", same) == "超时时间是 30 秒。[1]"


def test_a_definition_goes_before_a_mention() -> None:
    passages = (
        PromptPassage(index=1, text="升级前先停掉网关。网关是把外部请求转给内部服务的程序。重启网关要一分钟。"),
    )
    best = extract_answer("网关是什么？", passages)
    assert "网关是把外部请求转给内部服务的程序。[1]" in best


def test_the_best_passage_comes_first_and_keeps_its_order() -> None:
    passages = (
        PromptPassage(index=1, text="备份由定时任务完成。"),
        PromptPassage(index=2, text="备份目录可以修改。默认的备份目录是 backup。"),
    )
    assert extract_answer("备份目录可以修改吗？默认的备份目录？", passages) == (
        "备份目录可以修改。[2]默认的备份目录是 backup。[2]"
    )


def test_the_headings_above_a_passage_tell_what_it_is_about() -> None:
    passages = (
        PromptPassage(index=1, text="它保存 7 天。", heading_path="运维 > 审计日志"),
        PromptPassage(index=2, text="它保存 30 天。", heading_path="运维 > 备份"),
    )
    assert extract_answer("审计日志", passages) == "它保存 7 天。[1]"


@pytest.mark.parametrize(
    ("question", "expected"),
    [("今天天气怎么样？", "没有找到"), ("How do I bake bread?", "No sentence")],
)
def test_it_says_in_the_questions_language_that_nothing_matches(question: str, expected: str) -> None:
    assert answer(question).startswith(expected)
    assert "[" not in answer(question)


@pytest.mark.parametrize(("question", "expected"), [("端口？", "知识库里没有"), ("Which port?", "Nothing about")])
def test_it_says_that_there_are_no_passages(question: str, expected: str) -> None:
    assert answer(question, ()).startswith(expected)


async def test_it_streams_small_pieces_and_ends_once() -> None:
    request = ChatRequest(model="", messages=(), question="什么是分块", passages=PASSAGES)
    deltas = [delta async for delta in ExtractiveChat().stream(request)]
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert "".join(texts) == answer("什么是分块")
    assert len(texts) > 1
    assert all(0 < len(text) <= PIECE_CHARS for text in texts)
    assert [isinstance(delta, StreamEnd) for delta in deltas] == [False] * len(texts) + [True]


@settings(max_examples=100, deadline=None)
@given(
    question=st.text(max_size=60),
    texts=st.lists(st.text(alphabet="端口是 a.b\n|-`#:：?？1。[]>*~", max_size=200), max_size=4),
)
def test_it_cites_only_what_it_was_given(question: str, texts: list[str]) -> None:
    passages = tuple(PromptPassage(index=index, text=text) for index, text in enumerate(texts, start=1))
    text = extract_answer(question, passages)
    assert text
    assert text == extract_answer(question, passages)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab 端。.\n|-`#:：?~", max_size=300))
def test_units_are_in_order_and_not_empty(text: str) -> None:
    units = cut_into_units(7, text)
    assert [unit.order for unit in units] == list(range(len(units)))
    assert all(unit.text and unit.passage == 7 for unit in units)


def test_it_leaves_out_a_sentence_that_only_repeats_the_question() -> None:
    guide = PromptPassage(index=3, text="登录后输入「怎么配置 MySQL？」，按回车发送。")
    text = answer("怎么配置 MySQL？", (*PASSAGES, guide))
    assert "按回车" not in text
    assert "`DATABASE_URL`" in text


def test_a_statement_that_begins_with_the_words_of_the_question_is_an_answer() -> None:
    (passage,) = (PromptPassage(index=1, text="网关超时的默认值是 3 秒，重试两次。"),)
    assert answer("网关超时的默认值？", (passage,)) == "网关超时的默认值是 3 秒，重试两次。[1]"


@pytest.mark.parametrize(
    "question",
    [
        "DocMind 的创始人是谁？",
        "How much does DocMind cost?",
        "IDE 怎么通过 MCP 使用 DocMind？",
        "DocMind 支持 PDF 吗？",
    ],
)
def test_the_name_of_the_product_alone_is_no_answer(question: str) -> None:
    manual = "DocMind 默认使用 SQLite。DocMind 支持中文和英文。启动 DocMind 只要一条命令。停止 DocMind 按 Ctrl-C。"
    guide = "DocMind uses SQLite by default. DocMind keeps all data. Start DocMind with one command. Ctrl-C stops it."
    texts = (
        manual,
        guide,
        "端口是 8000。日志写到标准错误。备份数据目录即可。",
        "Backups are copies of the data folder.",
    )
    passages = tuple(PromptPassage(index=index, text=text) for index, text in enumerate(texts, start=1))
    assert "[" not in answer(question, passages)


def test_it_prefers_sentences_in_the_language_of_the_question() -> None:
    english = PromptPassage(index=1, text="To use MySQL, set `DATABASE_URL` to the address of the MySQL database.")
    chinese = PromptPassage(index=2, text="要使用 MySQL，请设置环境变量 `DATABASE_URL`。")
    assert answer("怎么使用 MySQL？", (english, chinese)).startswith("要使用 MySQL")
    assert answer("How do I use MySQL?", (chinese, english)).startswith("To use MySQL")


def test_it_answers_from_the_other_language_where_there_is_nothing_else() -> None:
    english = PromptPassage(index=1, text="To use MySQL, set `DATABASE_URL` to the address of the MySQL database.")
    assert "`DATABASE_URL`" in answer("怎么使用 MySQL？", (english,))
