from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docmind.text import encode_term, encode_terms
from docmind.text.encoding import PREFIX

TERMS = st.one_of(st.text(min_size=1), st.text("拆分端口abz019", min_size=1, max_size=14), st.text("az09", min_size=50))


@given(TERMS)
@example("的")
@example("a" * 57)
@example("a" * 58)
@example("拆" * 11)
@example("拆" * 12)
@example("\ud800")
@settings(deadline=None)
def test_it_stays_inside_the_alphabet_and_the_length(term: str) -> None:
    encoded = encode_term(term)
    assert re.fullmatch(r"[a-z0-9]{4,60}", encoded)
    assert encoded.startswith(PREFIX)


@given(TERMS, TERMS)
@settings(deadline=None)
def test_it_encodes_different_terms_differently(left: str, right: str) -> None:
    assert (encode_term(left) == encode_term(right)) == (left == right)


def test_it_tells_terms_apart_that_begin_alike() -> None:
    assert encode_term("a" * 200) != encode_term("a" * 201)


def test_it_refuses_an_empty_term() -> None:
    with pytest.raises(ValueError, match="empty"):
        encode_term("")


def test_it_joins_terms_by_spaces() -> None:
    assert encode_terms(["port", "端口"]) == f"{encode_term('port')} {encode_term('端口')}"
    assert encode_terms([]) == ""
