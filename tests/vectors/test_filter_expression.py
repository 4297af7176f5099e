"""Filters become expressions that say what was meant, whatever a tag is made of."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind.errors import PermanentError
from docmind.vectors import VectorFilter, expression

IDS = st.frozensets(st.integers(min_value=-(2**63), max_value=2**63 - 1), min_size=1, max_size=5)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
HOSTILE = st.sampled_from(
    ['"', "\\", '\\"', '"] or id > 0 or lang in ["', "\n", "\r\n", "\\n", "\\u0022", "'", "{x}", "%"]
)
TAGS = st.frozensets(st.one_of(UNICODE, st.lists(st.one_of(HOSTILE, UNICODE), max_size=4).map("".join)), min_size=1)
LITERAL = re.compile(r'"(?:[^"\\\r\n]|\\["\\nr])*"')


def test_it_joins_all_parts_with_and() -> None:
    condition = VectorFilter(
        kb_ids=frozenset({2, 1}),
        document_ids=frozenset({7}),
        langs=frozenset({"zh", "en"}),
        tags=frozenset({'a"b', "标签"}),
    )
    assert expression(condition) == (
        'kb_id in [1, 2] and document_id in [7] and lang in ["en", "zh"]'
        ' and array_contains_any(tags, ["a\\"b", "标签"])'
    )


@given(kb_ids=IDS, tags=TAGS)
def test_it_keeps_every_tag_inside_its_quotes(kb_ids: frozenset[int], tags: frozenset[str]) -> None:
    text = expression(VectorFilter(kb_ids=kb_ids, tags=tags))
    literals = LITERAL.findall(text)
    skeleton = LITERAL.sub("S", text)
    assert re.fullmatch(r"kb_id in \[-?\d+(, -?\d+)*\] and array_contains_any\(tags, \[S(, S)*\]\)", skeleton)
    assert {ast.literal_eval(re.sub(r"[^\x20-\x7e]", _escaped, literal)) for literal in literals} == tags


def _escaped(match: re.Match[str]) -> str:
    return f"\\U{ord(match.group()):08x}"


@pytest.mark.parametrize("value", ["1] or id > 0", 1.5, None])
def test_it_takes_nothing_but_integers_as_ids(value: Any) -> None:
    with pytest.raises(TypeError):
        expression(VectorFilter(kb_ids=frozenset({value})))


def test_it_refuses_text_that_is_not_unicode() -> None:
    with pytest.raises(PermanentError) as caught:
        expression(VectorFilter(kb_ids=frozenset({1}), tags=frozenset({"\ud800"})))
    assert caught.value.code == "invalid_filter"


@pytest.mark.parametrize("empty", ["kb_ids", "document_ids", "langs", "tags"])
def test_it_knows_that_an_empty_set_matches_nothing(empty: str) -> None:
    parts: dict[str, Any] = {"kb_ids": frozenset({1})}
    assert not VectorFilter(**parts).matches_nothing
    assert VectorFilter(**{**parts, empty: frozenset()}).matches_nothing
