from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmind.text import find_identifiers


@pytest.mark.parametrize(
    "identifier",
    [
        "server.shutdown",
        "maxPoolSize",
        "HTTPServer",
        "--max-old-space-size",
        "-Xmx512m",
        "E1205",
        "ORA-00942",
        "ERR_CONNECTION_REFUSED",
        "snake_case",
        "__init__",
        "text-embedding-v3",
        "v2.3.9",
        "3.11",
        "3306",
        "404",
        "utf8mb4",
        "/etc/my.cnf",
        "docs/setup.md",
        ".env",
        "std::vector",
        "a@b.com",
        "https://docs.example.com/a",
        "127.0.0.1:3306",
        "nginx:1.25",
        "C++",
        "MySQL",
    ],
)
def test_it_finds_the_whole_identifier_as_written(identifier: str) -> None:
    assert find_identifiers(f"配置{identifier}，然后 (see `{identifier}`).") == (identifier,)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "plain English words",
            "数据库",
            "and/or",
            "don't",
            "e.g. this",
            "the 1st and 22nd",
            "API APIs",
            "5 - 3",
            "—",
        ),
        *("</div>", "tar -x", "_so_ it is", "100"),
    ],
)
def test_it_leaves_out_ordinary_words(text: str) -> None:
    assert find_identifiers(text) == ()


def test_it_gives_each_once_in_order_of_appearance() -> None:
    assert find_identifiers("E1205 maxPoolSize E1205") == ("E1205", "maxPoolSize")


def test_it_does_not_take_the_full_stop_along() -> None:
    assert find_identifiers("Call server.shutdown.") == ("server.shutdown",)


def test_it_leaves_out_what_is_too_long_for_a_name() -> None:
    assert find_identifiers("a1" * 500) == ()


@given(st.text())
@settings(deadline=None)
def test_it_finds_an_identifier_again_in_itself(text: str) -> None:
    for identifier in find_identifiers(text):
        assert find_identifiers(identifier) == (identifier,)
