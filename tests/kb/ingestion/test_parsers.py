from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.kb.ingestion.parsers.decoding import decode_text
from apps.kb.ingestion.parsers.registry import choose_parser
from apps.kb.ingestion.types import ParsedDocument
from docmind.errors import PermanentError

TEXT = "# 端口\n\n服务监听 8080 端口。\n"


def parse(content: bytes, name: str = "a.md") -> ParsedDocument:
    return choose_parser(content, name).parse(content, name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "gbk"])
def test_it_reads_each_encoding(encoding: str) -> None:
    assert decode_text(TEXT.encode(encoding)) == TEXT


def test_it_makes_line_ends_uniform() -> None:
    assert parse(b"a\r\nb\rc\n", "a.txt").markdown == "a\nb\nc\n"


@pytest.mark.parametrize(
    "content",
    [
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\n",
        b"PK\x03\x04\x14\x00\x06\x00",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"\x7fELF\x02\x01\x01\x00",
        b"MZ\x90\x00\x03\x00\x00\x00",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64),
        bytes(range(256)) * 8,
        b"text and then \x00\x00\x00\x01\x02\x03\x04",
    ],
)
def test_it_refuses_a_binary_whatever_its_name(content: bytes) -> None:
    with pytest.raises(PermanentError) as refusal:
        choose_parser(content, "notes.md")
    assert refusal.value.code == "unsupported_file"


def test_it_refuses_html_for_now() -> None:
    with pytest.raises(PermanentError):
        choose_parser(b"<!DOCTYPE html><html><body>a</body></html>", "page.html")


def test_it_takes_a_word_that_looks_like_a_signature() -> None:
    assert parse("MZ 是一个缩写。".encode(), "a.txt").markdown == "MZ 是一个缩写。"


def test_it_chooses_markdown_by_content_too() -> None:
    assert choose_parser(b"# Title\n\ntext\n", "README").name == "markdown"
    assert choose_parser(b"just words\n", "README").name == "text"
    assert choose_parser(b"just words\n", "readme.MD").name == "markdown"


def test_it_survives_a_character_cut_at_the_end_of_the_head() -> None:
    content = "端口".encode() * 100_000
    assert choose_parser(content[:65_536], "a.txt").name == "text"


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"---\ntitle: x\n---\n\n"])
def test_it_refuses_an_empty_document(content: bytes) -> None:
    with pytest.raises(PermanentError) as refusal:
        parse(content)
    assert refusal.value.code == "empty_document"


def test_it_reads_front_matter() -> None:
    parsed = parse(
        b'---\ntitle: "Setup: first"\nversion: 2.1  # now\ndate: 2026-03-05\ntags: [mysql, "redis"]\n'
        b"keywords:\n  - cache\n  - mysql\nnested:\n  deep: 1\n---\n\nBody.\n"
    )
    assert parsed.markdown == "# Setup: first\n\n\nBody.\n"
    assert (parsed.doc_version, parsed.effective_date) == ("2.1", date(2026, 3, 5))
    assert parsed.tags == ("mysql", "redis", "cache")


@pytest.mark.parametrize(
    "text", ["---\n\nText between breaks.\n\n---\n", "---\ntitle: open\n\nText\n", "---\nplain\n---\n"]
)
def test_it_leaves_a_thematic_break_alone(text: str) -> None:
    assert parse(text.encode()).markdown == text


def test_it_drops_images_that_stand_in_the_address() -> None:
    parsed = parse(b"![logo](data:image/png;base64,AAAA////BBBB==) text")
    assert parsed.markdown == "![logo]() text"
    assert parsed.warnings


@given(st.binary(max_size=300))
def test_it_either_reads_or_refuses(content: bytes) -> None:
    try:
        parsed = parse(content)
    except PermanentError as error:
        code, text = error.code, ""
    else:
        code, text = "", parsed.markdown
    assert code in {"", "unsupported_file", "empty_document"}
    assert bool(text) != bool(code)
    assert "\r" not in text
    assert "\x00" not in text
