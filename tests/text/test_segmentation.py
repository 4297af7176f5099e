from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmind.text import find_identifiers, segment, significant_terms
from docmind.text.segmentation import STOP_WORDS, _tokenizer

_PIECES = st.one_of(
    st.text(max_size=8),
    st.text("拆分端口数据库连接池的是微服务器", max_size=6),
    st.sampled_from(
        [
            "server.shutdown",
            "maxPoolSize",
            "--max-old-space-size",
            "E1205",
            "v2.3.9",
            "/etc/my.cnf",
            "C++",
            ".env",
            "ＭｙＳＱＬ",
        ]
    ),
    st.sampled_from(list(" .,，。'-_/:@#+\n`()")),
)
TECHNICAL_TEXT = st.lists(_PIECES, max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server.shutdown", ["server.shutdown", "server", "shutdown"]),
        ("maxPoolSize", ["maxpoolsize", "max", "pool", "size"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("--max-old-space-size", ["--max-old-space-size", "max-old-space-size", "max", "old", "space", "size"]),
        ("E1205", ["e1205", "1205"]),
        ("text-embedding-v3", ["text-embedding-v3", "text", "embedding", "v3"]),
        ("v2.3.9", ["v2.3.9", "2.3.9", "2.3"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("docs/setup.md", ["docs/setup.md", "docs", "setup.md", "setup", "md"]),
        ("C++", ["c++", "c"]),
        ("e.g.", ["e.g", "eg"]),
        ("APIs", ["apis", "api"]),
        ("Größe", ["grösse"]),
        ("plain words", ["plain", "words"]),
        ("!? …—", []),
    ],
)
def test_it_keeps_words_whole_and_adds_their_parts(text: str, expected: list[str]) -> None:
    assert segment(text) == expected


def test_it_segments_chinese_in_search_mode() -> None:
    terms = segment("服务拆分后数据库连接池的端口")
    assert {"服务", "拆分", "数据", "数据库", "连接池", "端口", "的"} <= set(terms)


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("把分片拆分为四个", "拆分"),
        ("北京大学生宿舍", "北京大学"),
        ("数据库存储引擎", "库存"),
        ("研究生命起源", "生命"),
    ],
)
def test_it_gives_words_that_lie_across_a_cut(sentence: str, word: str) -> None:
    assert word in segment(sentence)


@given(st.text("把分片拆为四个数据库存储引擎研究生命起源北京大学生端口连接池服务器", min_size=2, max_size=24))
@settings(deadline=None)
def test_every_dictionary_word_of_two_or_three_characters_is_found_wherever_it_stands(run: str) -> None:
    terms = set(segment(run))
    for length in (2, 3):
        for start in range(len(run) - length + 1):
            word = run[start : start + length]
            assert not _tokenizer.FREQ.get(word) or word in terms


def test_it_keeps_one_character_chinese_terms() -> None:
    assert segment("锁") == ["锁"]


def test_it_finds_the_identifier_between_chinese_characters() -> None:
    terms = segment("请设置server.shutdown参数，端口为3306。")
    assert {"server.shutdown", "shutdown", "参数", "端口", "3306"} <= set(terms)


def test_it_keeps_repeats_in_order() -> None:
    assert segment("port 端口 port") == ["port", "端口", "port"]


def test_it_treats_full_width_and_half_width_alike() -> None:
    assert segment("ＭｙＳＱＬ　８．０") == segment("MySQL 8.0")


def test_it_finds_a_part_of_a_word_that_is_in_no_dictionary() -> None:
    assert set(segment("罡魇")) & set(segment("配置罡魇")) >= {"罡", "魇"}


def test_it_gives_bigrams_for_kana() -> None:
    assert segment("サーバー") == ["サー", "ーバ", "バー"]


@given(TECHNICAL_TEXT)
@settings(deadline=None)
def test_it_gives_terms_without_white_space_or_capitals(text: str) -> None:
    for term in segment(text):
        assert term
        assert term == term.casefold()
        assert not any(map(str.isspace, term))


@given(TECHNICAL_TEXT)
@settings(deadline=None)
def test_it_makes_every_identifier_a_term(text: str) -> None:
    assert {identifier.casefold() for identifier in find_identifiers(text)} <= set(segment(text))


@given(TECHNICAL_TEXT)
@settings(deadline=None)
def test_it_gives_significant_terms_if_there_are_terms(text: str) -> None:
    terms = segment(text)
    significant = significant_terms(text)
    assert bool(significant) == bool(terms)
    assert set(significant) <= set(terms)
    assert len(significant) == len(set(significant))


def test_it_leaves_out_stop_words() -> None:
    assert significant_terms("什么是数据库的端口") == ("数据", "据库", "数据库", "端口")
    assert significant_terms("How do I restart the server?") == ("restart", "server")


def test_it_keeps_stop_words_if_nothing_else_is_there() -> None:
    assert significant_terms("是什么") == tuple(dict.fromkeys(segment("是什么")))
    assert set(significant_terms("是什么")) <= STOP_WORDS


def test_it_is_the_same_in_every_thread() -> None:
    text = "数据库连接池的大小由 maxPoolSize 决定"
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(segment, [text] * 32))
    assert all(result == results[0] for result in results)


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o500)
    yield tmp_path
    tmp_path.chmod(0o700)


def test_it_writes_nothing_to_stderr_and_no_cache(read_only_folder: Path) -> None:
    program = (
        "import logging; logging.basicConfig(level=logging.DEBUG)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from docmind.text import segment\n"
        "with ThreadPoolExecutor(4) as threads:\n"
        "    print(set(map(tuple, threads.map(segment, ['拆分端口'] * 4))))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"TMPDIR": str(read_only_folder), "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.strip() == "{('拆分', '端口')}"
    assert run.stderr == ""
    assert list(read_only_folder.iterdir()) == []


def test_it_takes_no_handler_from_jieba() -> None:
    assert logging.getLogger("jieba").handlers == []
