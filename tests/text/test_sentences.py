from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmind.text import Sentence, split_sentences


def _texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("请升级。然后重启！好吗？好；完……了", ["请升级。", "然后重启！", "好吗？", "好；", "完……", "了"]),
        ("One. Two! Three? Four; five.", ["One.", "Two!", "Three?", "Four;", "five."]),
        ("第一行\n第二行\r\n\n第三行", ["第一行", "第二行", "第三行"]),
        ("他说：“你好。”然后走了。", ["他说：“你好。”", "然后走了。"]),
        ('She said "Stop." Then left.', ['She said "Stop."', "Then left."]),
        ("结论。[1][2]下一句【3】。", ["结论。[1][2]", "下一句【3】。"]),
        ("It works. [1] Next one [2, 3]. Done.", ["It works. [1]", "Next one [2, 3].", "Done."]),
        ("Use it.然后重启。", ["Use it.", "然后重启。"]),
        ("Foo etc. and Foo Inc. The end.", ["Foo etc. and Foo Inc.", "The end."]),
        ("1. First step. Second.\n2. Other.", ["1. First step.", "Second.", "2. Other."]),
    ],
)
def test_it_splits_at_sentence_ends(text: str, expected: list[str]) -> None:
    assert _texts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Upgrade to v2.3.9 now",
        "请升级到 v2.3.9 或 3.14 版本",
        "Use a tool, e.g. docmind.text or setup.md here",
        "See Fig. 3 and cf. section 4 vs. 5",
        "See No. 5 of the list",
        "J. Smith wrote it",
        "Open https://a.b.com/c?d=1;e=2 first",
        "Set `a; b. c` once",
        "Check a != b or x?.y",
        "Put it into .env files",
    ],
)
def test_it_does_not_split_inside_names_numbers_and_abbreviations(text: str) -> None:
    assert _texts(text) == [text]


def test_it_gives_offsets_into_the_source() -> None:
    assert split_sentences("  你好。 Hi. ") == [
        Sentence(start=2, end=5, text="你好。"),
        Sentence(start=6, end=9, text="Hi."),
    ]


def test_it_gives_nothing_for_white_space() -> None:
    assert split_sentences(" \n\t ") == []


_PIECES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["。", ". ", "e.g. ", "v2.3.9", "\n", "[1]", "`a. b`", "“", "”", "…", "1. ", "; "]),
)


@given(st.lists(_PIECES, max_size=20).map("".join))
@settings(deadline=None)
def test_it_covers_the_text_in_order_and_matches_its_offsets(text: str) -> None:
    reached = 0
    for sentence in split_sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text == sentence.text.strip() != ""
        assert not text[reached : sentence.start].strip()
        reached = sentence.end
    assert not text[reached:].strip()
