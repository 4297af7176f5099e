"""Cuts a Markdown passage into what can be quoted: a sentence, a list item, a table row, a code block.

A unit carries the words that lead to it (headings, a question, a line that ends in a colon): they say what it is about
although they are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from docmind.text import split_sentences

UnitKind = Literal["sentence", "item", "row", "code"]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_INDENTED = re.compile(r"^(?: {4}|\t)\s*\S")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(.*)$")
_QUOTE = re.compile(r"^\s*>\s?")
_TABLE_ROW = re.compile(r"^\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_CITATION_LIKE = re.compile(r"\s?\[\d{1,3}\](?!\()")
_LEADS_ON = (":", "：")
_ASKS = ("?", "？")
_LONGEST_CODE_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One quotable piece of passage `passage` (its index in the prompt); `order` is its place in that passage."""

    passage: int
    order: int
    kind: UnitKind
    text: str
    """Prose without list marks and citations; a table row as written; a code block with its fences."""
    context: str = ""
    """Headings, the question or the line above that lead to this unit."""
    lead: str = ""
    """The line that ends in a colon right above, to be shown before the unit."""
    table_head: tuple[str, ...] = ()
    """For a row: the table's heading row and rule."""


@dataclass(slots=True)
class _State:
    heading: str = ""
    question: str = ""
    lead: str = ""

    def context(self) -> str:
        return " ".join(part for part in (self.heading, self.question, self.lead) if part)


def cut_into_units(passage: int, text: str, *, heading_path: str = "") -> list[Unit]:
    """The units of one passage, in order."""
    state = _State(heading=heading_path)
    units: list[Unit] = []
    for block in _blocks(text):
        units.extend(_units_of(passage, block, state, first=len(units)))
    return units


def _blocks(text: str) -> Iterator[list[str]]:
    """Runs of lines that belong together: a fenced or indented block, a table, a heading, an item, a paragraph."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            block.append(line)
            if line.strip().startswith(fence):
                yield block
                block, fence = [], ""
            continue
        if opening := _FENCE.match(line):
            if block:
                yield block
            block, fence = [line], opening[1]
            continue
        if block and not _continues(block[-1], line):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _continues(previous: str, line: str) -> bool:
    """Whether a line belongs to the block of the line before it."""
    if not line.strip() or _HEADING.match(line) or _HEADING.match(previous) or _ITEM.match(line):
        return False
    return _is_row(line) == _is_row(previous) and _is_code(line) == _is_code(previous)


def _is_row(line: str) -> bool:
    return bool(_TABLE_ROW.match(line))


def _is_code(line: str) -> bool:
    """Whether a line is indented as code; a list item's own lines are not."""
    return bool(_INDENTED.match(line)) and not _ITEM.match(line)


def _units_of(passage: int, block: list[str], state: _State, *, first: int) -> Iterator[Unit]:
    if _FENCE.match(block[0]) or (_is_code(block[0]) and len(block) > 1):
        yield Unit(
            passage=passage,
            order=first,
            kind="code",
            text=_shortened_code(block),
            context=state.context(),
            lead=state.lead,
        )
    elif _is_row(block[0]):
        yield from _rows(passage, block, state, first=first)
    elif heading := _HEADING.match(block[0]):
        state.heading, state.question, state.lead = heading[1], "", ""
    else:
        yield from _prose(passage, block, state, first=first)


def _rows(passage: int, block: list[str], state: _State, *, first: int) -> Iterator[Unit]:
    has_head = len(block) > 1 and _TABLE_RULE.match(block[1])
    head = tuple(line.strip() for line in block[:2]) if has_head else ()
    context = " ".join((state.context(), *head[:1]))
    for number, line in enumerate(block[len(head) :]):
        row = _CITATION_LIKE.sub("", line.strip())
        yield Unit(passage=passage, order=first + number, kind="row", text=row, context=context, table_head=head)


def _prose(passage: int, block: list[str], state: _State, *, first: int) -> Iterator[Unit]:
    item = _ITEM.match(block[0])
    lines = [item[2] if item else block[0], *block[1:]]
    text = _joined([_QUOTE.sub("", line).strip() for line in lines])
    text = _CITATION_LIKE.sub("", _IMAGE.sub(r"\1", text))
    if not item:
        state.lead = ""
    number = first
    for sentence in split_sentences(text):
        words = sentence.text
        if words.rstrip("*_ ").endswith(_ASKS):
            state.question, state.lead = words, ""
        elif words.rstrip("*_ ").endswith(_LEADS_ON):
            state.lead = words
        else:
            kind: UnitKind = "item" if item else "sentence"
            yield Unit(passage=passage, order=number, kind=kind, text=words, context=state.context(), lead=state.lead)
            number += 1


def _joined(lines: list[str]) -> str:
    """Lines of one paragraph; Latin words get a space between them, Chinese ones do not."""
    text = ""
    for line in lines:
        if text and line:
            text += " " if text[-1].isascii() and line[0].isascii() else ""
        text += line
    return text


def _shortened_code(block: list[str]) -> str:
    """The block between fences, at most _LONGEST_CODE_LINES lines of it."""
    if not _FENCE.match(block[0]):
        block = ["```", *(line.removeprefix("    ") for line in block), "```"]
    closed = len(block) > 1 and bool(_FENCE.match(block[-1]))
    body = block[1:-1] if closed else block[1:]
    if len(body) > _LONGEST_CODE_LINES:
        body = [*body[:_LONGEST_CODE_LINES], "…"]
    opening = block[0].strip()
    fence = opening[: len(opening) - len(opening.lstrip(opening[0]))]
    return "\n".join([opening, *body, fence])
