"""Markdown as sections of blocks: one pass over the lines, linear in the text.

1. Headings (ATX and one-line setext, outside code) open sections and make a stack: the heading path.
2. Inside a section, runs of lines become blocks: fenced code, table (header row, delimiter row, rows), text.
3. Blocks without a letter or digit (thematic breaks, for instance) are left out.
4. A heading with neither text nor headings under it is a block of its parent's path, so that its words are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

BlockKind = Literal["text", "code", "table"]

MAX_HEADING_CHARS = 200
_DELIMITER_ROW = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_NO_SETEXT = re.compile(r"[ \t]*(?:[-*+>|]|\d+[.)])[ \t]?")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_ANCHOR = re.compile(
    r"\s*\{#[^{}]*\}$|</?(?:a|b|br|code|em|font|i|img|kbd|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
"""Not every `<…>`: addresses and type parameters are words of a heading."""
_MARKS = re.compile(r"[*`]+|~~|(?<!\w)__?|__?(?!\w)")
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`text[start:end]` without the final line end. `header_end`: where a table's delimiter row ends."""

    kind: BlockKind
    start: int
    end: int
    header_end: int = 0


@dataclass(slots=True, kw_only=True)
class Section:
    """What stands between two headings. `level` is 0 before the first heading."""

    headings: tuple[str, ...]
    level: int
    start: int
    heading_end: int
    blocks: list[Block] = field(default_factory=list)


def read_sections(text: str) -> list[Section]:
    """The sections that hold text, in order; `Section.headings` is the path down to the section's own heading."""
    sections = list(_sections(text))
    filled = []
    for section, follower in zip(sections, [*sections[1:], None], strict=True):
        is_leaf = follower is None or follower.level <= section.level
        if not section.blocks and section.level and is_leaf and section.headings[-1]:
            heading = Block(kind="text", start=section.start, end=section.heading_end)
            section = Section(
                headings=section.headings[:-1],
                level=section.level,
                start=section.start,
                heading_end=section.start,
                blocks=[heading],
            )
        if section.blocks:
            section.headings = tuple(filter(None, section.headings))
            filled.append(section)
    return filled


def _sections(text: str) -> Iterator[Section]:
    stack: list[tuple[int, str]] = []
    current = Section(headings=(), level=0, start=0, heading_end=0)
    for item in _scan(text):
        if isinstance(item, Block):
            if _WORD.search(text, item.start, item.end):
                current.blocks.append(item)
            continue
        yield current
        while stack and stack[-1][0] >= item.level:
            stack.pop()
        stack.append((item.level, item.title))
        headings = tuple(title for _level, title in stack)
        current = Section(headings=headings, level=item.level, start=item.start, heading_end=item.end)
    yield current


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heading:
    level: int
    title: str
    start: int
    end: int


@dataclass(slots=True)
class _Open:
    """The block that is being read; `lines` counts those of a text."""

    kind: BlockKind
    start: int
    end: int
    lines: int = 1
    last_line: int = 0
    fence: str = ""
    header_end: int = 0

    def close(self) -> Block:
        return Block(kind=self.kind, start=self.start, end=self.end, header_end=self.header_end)


def _scan(text: str) -> Iterator[Block | _Heading]:
    current: _Open | None = None
    for start, end in _lines(text):
        line = text[start:end].strip()
        if current is not None and current.kind == "code":
            current.end = end
            if line.startswith(current.fence) and not line.strip(current.fence[0]):
                yield current.close()
                current = None
            continue
        if current is not None and (not line or (current.kind == "table" and "|" not in line)):
            yield current.close()
            current = None
        if not line:
            continue
        if fence := _fence(line):
            if current is not None:
                yield current.close()
            current = _Open("code", start, end, fence=fence)
        elif heading := _atx(text, start, end):
            if current is not None:
                yield current.close()
            current = None
            yield heading
        elif current is None:
            current = _Open("text", start, end, last_line=start)
        elif current.kind == "text" and (level := _setext(text, current, line)):
            yield _Heading(
                level=level, title=plain_heading(text[current.start : current.end]), start=current.start, end=end
            )
            current = None
        elif current.kind == "text" and _is_delimiter(line) and "|" in text[current.last_line : current.end]:
            table_start = current.last_line
            if current.lines > 1:
                yield Block(kind="text", start=current.start, end=table_start - 1)
            current = _Open("table", table_start, end, header_end=end)
        else:
            current.end, current.last_line, current.lines = end, start, current.lines + 1
    if current is not None:
        yield current.close()


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, end
        start = end + 1
    if start < len(text):
        yield start, len(text)


def _fence(line: str) -> str:
    if line[0] not in "`~":
        return ""
    match = _FENCE.match(line)
    return (match[1] or match[2]) if match else ""


def _atx(text: str, start: int, end: int) -> _Heading | None:
    match = _ATX.match(text, start, end)
    if match is None:
        return None
    title = _CLOSING_MARKS.sub("", text[match.end() : min(end, match.end() + 4 * MAX_HEADING_CHARS)])
    return _Heading(level=len(match[1]), title=plain_heading(title), start=start, end=end)


def _setext(text: str, current: _Open, line: str) -> int:
    """The level of the heading that `line` makes of a text of one line before it; 0 if it makes none."""
    if current.lines != 1 or len(line) < 2 or line[0] not in "=-" or line.strip(line[0]):
        return 0
    if current.end - current.start > MAX_HEADING_CHARS or _NO_SETEXT.match(text, current.start, current.end):
        return 0
    return 1 if line[0] == "=" else 2


def _is_delimiter(line: str) -> bool:
    return line[0] in "|:-" and "|" in line and bool(_DELIMITER_ROW.match(line))


def plain_heading(raw: str) -> str:
    """A heading's words, without marks, links and anchors, on one line."""
    title = _LINK.sub(r"\1", raw[: 4 * MAX_HEADING_CHARS])
    title = _MARKS.sub("", _ANCHOR.sub("", title))
    return " ".join(title.split())[:MAX_HEADING_CHARS].strip()
