from __future__ import annotations

import string
from pathlib import Path

import pytest
from dashscope.tokenizers import get_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docmind.text import estimate_tokens
from docmind.text.token_estimate import CODE_CHARS_PER_TOKEN

REPOSITORY = Path(__file__).parents[2]

_WORDS = st.sampled_from(["the", "Configuration", "maxPoolSize", "database's", "HTTPServer", "kubectl", "SELECT"])
_PIECES = st.one_of(
    st.text(max_size=10),
    st.text(string.ascii_letters, max_size=12),
    st.text(string.punctuation, max_size=4),
    st.text("数据库连接池端口拆分的了是在矽硷丌龘", max_size=8),
    st.text("，。！？；：“”（）《》、…—", max_size=3),
    st.text(" \t\r\n\u3000", max_size=40),
    st.text("0123456789.", max_size=8),
    st.emails(),
    _WORDS,
)
TEXT = st.lists(_PIECES, max_size=12).map("".join)


@pytest.fixture(scope="module")
def qwen_tokens() -> QwenCount:
    return QwenCount()


class QwenCount:
    """Counts tokens with the vocabulary that the dashscope package ships."""

    def __init__(self) -> None:
        self.tokenizer = get_tokenizer("qwen-plus")

    def __call__(self, text: str) -> int:
        return len(self.tokenizer.encode(text, allowed_special=set(), disallowed_special=()))


@given(TEXT)
@example("7\r\r\rm G'startup")
@example(" 翻译")
@example("PoweredListen")
@example("(directory'registered")
@example("a" + " " * 40 + "7")
# The same examples in each run: an estimate is judged by what is likely, not by what a search for years may find.
@settings(deadline=None, max_examples=500, derandomize=True)
def test_it_is_never_under_the_count_of_generated_text(qwen_tokens: QwenCount, text: str) -> None:
    true_count = qwen_tokens(text)
    assert estimate_tokens(text) >= true_count
    assert estimate_tokens(text, code_like=True) >= true_count


def test_it_is_never_under_the_count_of_the_sources_and_documents(qwen_tokens: QwenCount) -> None:
    files = [*sorted(REPOSITORY.glob("docmind/**/*.py")), *sorted(REPOSITORY.glob("docs/**/*.md"))]
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert estimate_tokens(text) >= qwen_tokens(text), file


@pytest.mark.parametrize(
    "text",
    [
        "The connection pool keeps a number of open connections to the database, so that no request has to wait. " * 5,
        "数据库连接池保持若干个已经打开的连接，请求到来时不必等待新的连接建立，从而缩短响应时间。" * 5,
    ],
)
def test_it_is_not_far_over_the_count_of_prose(qwen_tokens: QwenCount, text: str) -> None:
    assert estimate_tokens(text) <= 2 * qwen_tokens(text)


def test_it_counts_white_space() -> None:
    assert estimate_tokens("a" + "\n \n" * 10 + "b") > estimate_tokens("a b")


def test_it_charges_code_at_a_fixed_rate_at_least() -> None:
    text = "value " * 100
    assert estimate_tokens(text, code_like=True) == len(text) / CODE_CHARS_PER_TOKEN > estimate_tokens(text)


def test_it_is_zero_for_an_empty_text_alone() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens(" ") > 0


@given(st.text(min_size=1))
@settings(deadline=None)
def test_it_is_positive_for_any_text(text: str) -> None:
    assert estimate_tokens(text) > 0
