from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apps.kb.ingestion.chunker import chunk_document
from apps.kb.ingestion.types import ChildChunk, ChunkedDocument, ChunkSizes, PageStart, ParsedDocument
from tests.kb.ingestion.support import sections

SIZES = ChunkSizes()


def chunk(markdown: str, **facts: object) -> ChunkedDocument:
    return chunk_document(ParsedDocument(markdown=markdown, parser="markdown", **facts), SIZES)  # type: ignore[arg-type]


LINES = st.sampled_from(
    [
        "# 标题",
        "## Section",
        "### 深一层 `code`",
        "Title",
        "=====",
        "---",
        "",
        "",
        "这是一个句子，讲端口 3306。" * 12,
        "A sentence about `maxPoolSize` v2.3.9, e.g. this one. " * 9,
        "没有标点的长段落" * 120,
        "x" * 900,
        "[连接。说明](https://example.org/a?b;c=(d)) 和 <https://example.org/x.y>。",
        "```python",
        "```",
        "~~~",
        "print('a'); print('b')",
        "| 键 | 值 |",
        "|---|---|",
        "| a | " + "b。" * 30 + " |",
        "- 第一项；",
        "1. Step one.",
        "> quoted! text?",
        "    indented",
        "👩‍👩‍👧 e\u0301",
        "<!-- comment -->",
        "***",
    ]
)
MARKDOWN = st.lists(LINES | st.text(max_size=40).map(lambda s: s.replace("\r", "")), max_size=60).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN)
def test_it_keeps_every_invariant_of_chunks(markdown: str) -> None:
    chunked = chunk(markdown)
    longest = SIZES.atomic_chars + SIZES.child_chars + SIZES.overlap_chars
    for index, child in enumerate(chunked.children):
        assert child.index == index
        assert child.content[child.prefix_chars :] == markdown[child.start : child.end]
        assert child.content.strip()
        assert len(child.content) <= longest
    for parent in chunked.parents:
        assert parent.content[parent.prefix_chars :] == markdown[parent.start : parent.end]
        assert len(parent.content) <= SIZES.parent_limit
    members: dict[int, list[ChildChunk]] = {}
    for child in chunked.children:
        if child.parent_index is not None:
            members.setdefault(child.parent_index, []).append(child)
    assert sorted(members) == list(range(len(chunked.parents)))
    for position, children in members.items():
        parent = chunked.parents[position]
        assert len(children) >= 2
        assert parent.first_child == children[0].index
        assert all(parent.start <= child.start and child.end <= parent.end for child in children)
        assert {child.heading_path for child in children} == {parent.heading_path}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("<https://example.org/x.y>", "<https://example.org/x.y>"),
        ("Vec<T> and Map<K, V>", "Vec<T> and Map<K, V>"),
        ('<a name="top"></a>Start<br/> here {#start}', "Start here"),
    ],
)
def test_it_takes_tags_out_of_a_heading_and_keeps_addresses_and_types(heading: str, words: str) -> None:
    (child,) = chunk(f"# {heading}\n\ntext").children
    assert child.heading_path == (words,)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN)
@example("# <https://example.org/x.y>\n\ntext")
def test_it_loses_no_letter(markdown: str) -> None:
    chunked = chunk(markdown)
    covered = bytearray(len(markdown))
    for child in chunked.children:
        covered[child.start : child.end] = b"\1" * (child.end - child.start)
    headings = {word for child in chunked.children for heading in child.heading_path for word in heading}
    lost = {letter for place, letter in enumerate(markdown) if not covered[place] and letter.isalnum()}
    assert lost <= headings


@settings(max_examples=60, deadline=None)
@given(MARKDOWN, MARKDOWN)
def test_it_moves_no_boundary_in_another_section(before: str, after: str) -> None:
    fixed = "\n\n# 固定\n\n" + "这里是不变的一节。说明第一件事，也说明第二件事！\n\n" * 40 + "\n# 结束\n\n完。\n"

    def of_fixed(prefix: str) -> list[str]:
        children = chunk(f"{close(prefix)}{fixed}").children
        return [child.content_hash for child in children if child.heading_path == ("固定",)]

    assert of_fixed(before) == of_fixed(after)


def close(markdown: str) -> str:
    """A fence that is still open would swallow what follows."""
    return re.sub(r"`{3,}|~{3,}", "", markdown)


def test_it_takes_the_heading_path_from_the_stack() -> None:
    chunked = chunk("# A\n\n一\n\n### C\n\n二\n\n## B `x` {#b}\n\n三\n\nD\n===\n\n四\n")
    assert [child.heading_path for child in chunked.children] == [("A",), ("A", "C"), ("A", "B x"), ("D",)]
    assert [child.content for child in chunked.children] == ["一", "二", "三", "四"]
    assert chunked.children[1].tags == ("A", "C")


def test_it_reads_no_heading_inside_code() -> None:
    chunked = chunk("# A\n\n```sh\n# not a heading\n```\n\n    # nor this\n")
    assert [child.heading_path for child in chunked.children] == [("A",)]
    assert "# not a heading" in chunked.children[0].content


def test_it_finds_a_heading_without_text() -> None:
    chunked = chunk("# 手册\n\n## 支持 MySQL 8\n\n## 支持 SQLite\n\n默认。\n")
    assert [(child.heading_path, child.content) for child in chunked.children] == [
        (("手册",), "## 支持 MySQL 8"),
        (("手册", "支持 SQLite"), "默认。"),
    ]


def test_it_gives_nothing_for_a_text_without_letters() -> None:
    assert chunk("\n---\n\n***\n\n | \n").children == ()


def test_it_keeps_a_code_block_whole_where_it_fits() -> None:
    code = "```python\n" + "".join(f"value_{n} = compute({n})\n" for n in range(24)) + "```"
    assert len(code) < SIZES.atomic_chars
    chunked = chunk(f"# A\n\n{'前面的说明文字。' * 40}\n\n{code}\n\n{'后面的说明文字。' * 40}\n")
    assert sum(code in child.content for child in chunked.children) == 1


def test_it_cuts_a_long_code_block_between_lines() -> None:
    lines = [f"value_{n} = compute({n})  # 第 {n} 行" for n in range(200)]
    markdown = "```python\n" + "\n".join(lines) + "\n```\n"
    cut = {markdown[child.start : child.end].splitlines()[0] for child in chunk(markdown).children[1:]}
    assert cut <= set(lines)


def test_it_repeats_the_header_in_each_piece_of_a_table() -> None:
    header = "| 参数 | 默认值 | 说明 |\n|---|---|---|\n"
    rows = [f"| option_{n} | {n} | 这是第 {n} 个参数的说明 |" for n in range(60)]
    markdown = f"# 参数\n\n{header}" + "\n".join(rows) + "\n"
    chunked = chunk(markdown)
    assert len(chunked.children) > 3
    assert all(child.content.startswith(header) for child in chunked.children)
    assert all(parent.content.startswith(header) for parent in chunked.parents)
    found = [line for child in chunked.children for line in child.content.splitlines()[2:]]
    assert found == rows
    assert chunked.children[1].prefix_chars == len(header)


def test_it_never_cuts_a_link() -> None:
    link = "[配置说明。第二部分；第三](https://example.org/docs/config.html?a=1;b=2#part.3)"
    markdown = ("这里有一段说明文字，然后是链接" + link + "，然后继续。") * 30
    for child in chunk(markdown).children:
        content = child.content.replace(link, "")
        assert "https://" not in content
        assert "配置说明" not in content


def test_it_overlaps_neighbours_of_a_section_only() -> None:
    chunked = chunk(sections(2, paragraphs=6))
    for before, after in zip(chunked.children, chunked.children[1:], strict=False):
        same = before.heading_path == after.heading_path
        assert (0 < before.end - after.start <= SIZES.overlap_chars) if same else after.start >= before.end


def test_it_changes_few_chunks_for_a_paragraph_in_the_middle() -> None:
    text = sections(20, paragraphs=8)
    place = text.index("## 第 10 节") + len("## 第 10 节\n\n")
    edited = text[:place] + "插入的一段，讲的是别的事情。" * 8 + "\n\n" + text[place:]
    before = {child.content_hash for child in chunk(text).children}
    after = [child.content_hash for child in chunk(edited).children]
    assert 1 <= sum(content_hash not in before for content_hash in after) <= 5


def test_it_changes_one_or_two_chunks_for_one_character() -> None:
    text = sections(20, paragraphs=8)
    for place in range(200, len(text), 997):
        if text[place] in "#\n第 节":
            continue
        before = {child.content_hash for child in chunk(text).children}
        after = [child.content_hash for child in chunk(text[:place] + "改" + text[place + 1 :]).children]
        assert sum(content_hash not in before for content_hash in after) <= 2


def test_it_tells_pages_languages_and_kinds() -> None:
    first = "# 安装\n\n1. 下载安装包。\n2. 运行安装命令。\n\n"
    second = "# Backup\n\nWarning: never delete the volume while the server runs.\n"
    chunked = chunk(first + second, pages=(PageStart(number=1, start=0), PageStart(number=2, start=len(first))))
    assert [(child.page, child.lang, child.content_type) for child in chunked.children] == [
        (1, "zh", "procedure"),
        (2, "en", "warning"),
    ]


def test_it_cuts_a_giant_paragraph_without_punctuation_into_full_pieces() -> None:
    chunked = chunk("测" * 300_000)
    windows = 300_000 // 65_536 + 1
    assert 300_000 // SIZES.child_chars <= len(chunked.children) <= 300_000 // SIZES.child_chars + windows
