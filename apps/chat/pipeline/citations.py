"""Which passages an answer cites, and how much of it is cited. Pure; no model.

1. Code (fenced, inline) and links are masked by as many other characters: a `[1]` in them is not a citation.
2. Citations are `[1]`, `[1][3]`, `[1,3]`, `[1-3]`, and the full-width forms `［１］` and `【1】`, which are brought to
   the plain form character by character. Offsets never move.
3. The rest is cut into statements: sentences of prose, items of lists, rows of tables. A mark standing alone belongs to
   the statement before it. Headings, and uncited lead-ins that end with a colon, questions and scraps, state nothing.
4. coverage = statements with at least one valid citation / all statements; None where there is no statement.
5. confidence = coverage × the top rerank score (no coverage: the top score).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.chat.pipeline.events import Band
from docmind.text import split_sentences

MAX_RANGE: Final = 20
"""Longest `[a-b]` that counts as a range of passages."""

_FENCE: Final = re.compile(
    r"^[ \t>]{0,8}(?P<mark>`{3,}|~{3,})[^\n]*\n?(?:.*?^[ \t>]{0,8}(?P=mark)[`~]*[ \t]*$|.*)", re.M | re.S
)
_BACKTICKS: Final = re.compile(r"`+")
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_LINK: Final = re.compile(
    r"!?\[(?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){0,500}\]"
    r"\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
)
_ADDRESS: Final = re.compile(r"<?\bhttps?://[^\s<>，。；！？）】」]{1,2000}>?")

_NUMBER: Final = r"[ \u3000]{0,2}[0-9０-９]{1,3}[ \u3000]{0,2}"
_MARK: Final = re.compile(rf"(?<!\\)[\[［【](?P<inside>{_NUMBER}(?:[,，、;；\-–—~～]{_NUMBER}){{0,20}})[\]］】](?!\()")
_ITEM: Final = re.compile(r"(?P<first>\d{1,3})(?:\s*[-–—~～]\s*(?P<last>\d{1,3}))?")
_PLAIN: Final = str.maketrans("［］【】０１２３４５６７８９，、；～", "[][]0123456789,,,~")

_HEADING: Final = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]|$)")
_ROW: Final = re.compile(r"[ \t]*\|.*\|[ \t]*")
_RULER: Final = re.compile(r"[ \t|:\-=*_]+")
_BULLET: Final = re.compile(r"^[ \t>]*(?:[-*+•]|\d{1,3}[.、)）])(?=[ \t])")
_CLOSING: Final = re.compile(r"[*_~\"'”’」』）)\]\s]+$")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+|[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]|[^\W\d_A-Za-z]+")
_LEAST_WORDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCitations:
    """`indices`: the distinct valid numbers in order of appearance. `invalid_refs` counts numbers without a passage."""

    indices: tuple[int, ...]
    invalid_refs: int
    statements: int
    cited_statements: int

    @property
    def coverage(self) -> float | None:
        return self.cited_statements / self.statements if self.statements else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    score: float
    band: Band


def parse_citations(text: str, source_count: int) -> ParsedCitations:
    """The citations of an answer over passages numbered 1 … `source_count`. Never raises."""
    masked = _mask(text)
    numbers = [number for mark in _MARK.finditer(masked) for number in _numbers(mark)]
    valid = [number for number in numbers if 1 <= number <= source_count]
    cited = [any(1 <= number <= source_count for number in _cited(statement)) for statement in _statements(masked)]
    return ParsedCitations(
        indices=tuple(dict.fromkeys(valid)),
        invalid_refs=len(numbers) - len(valid),
        statements=len(cited),
        cited_statements=sum(cited),
    )


def strip_citations(text: str) -> str:
    """The text without its citations; code and links stay untouched."""
    pieces, position = [], 0
    for mark in _MARK.finditer(_mask(text)):
        pieces.append(text[position : mark.start()].rstrip(" "))
        position = mark.end()
    return "".join((*pieces, text[position:])) if pieces else text


def confidence_of(coverage: float | None, top_score: float, config: ConfigSnapshot) -> Confidence:
    """Coverage × top score, and its band by the configured bounds."""
    score = round(min(1.0, max(0.0, top_score)) * (1.0 if coverage is None else coverage), 4)
    if score >= config.confidence_high:
        return Confidence(score=score, band="HIGH")
    return Confidence(score=score, band="MEDIUM" if score >= config.confidence_medium else "LOW")


def _mask(text: str) -> str:
    """`text` with code blocks blanked and inline code and links replaced by letters; same length, same lines."""
    text = _FENCE.sub(lambda match: _NOT_NEWLINE.sub(" ", match[0]), text)
    text = _mask_inline_code(text)
    for pattern in (_LINK, _ADDRESS):
        text = pattern.sub(lambda match: _NOT_NEWLINE.sub("x", match[0]), text)
    return text


def _mask_inline_code(text: str) -> str:
    """Code spans: from a run of backticks to the next run of the same length in the same paragraph."""
    runs = [(match.start(), match.end()) for match in _BACKTICKS.finditer(text)]
    of_length: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(runs):
        of_length.setdefault(end - start, []).append(number)
    pieces, position, number = [], 0, 0
    while number < len(runs):
        start, end = runs[number]
        same = of_length[end - start]
        following = bisect_right(same, number)
        closing = same[following] if following < len(same) else None
        if closing is None or "\n\n" in text[end : runs[closing][0]]:
            number += 1
            continue
        span = text[start : runs[closing][1]]
        pieces += [text[position:start], _NOT_NEWLINE.sub("x", span)]
        position, number = runs[closing][1], closing + 1
    return "".join((*pieces, text[position:]))


def _numbers(mark: re.Match[str]) -> list[int]:
    """The numbers of one mark; a range that runs backwards or too far is one number that does not exist: 0."""
    numbers: list[int] = []
    for item in _ITEM.finditer(mark["inside"].translate(_PLAIN)):
        first = int(item["first"])
        last = int(item["last"] or first)
        numbers.extend(range(first, last + 1) if 0 <= last - first < MAX_RANGE else [0])
    return numbers


def _cited(statement: str) -> list[int]:
    return [number for mark in _MARK.finditer(statement) for number in _numbers(mark)]


def _statements(masked: str) -> Iterator[str]:
    """The substantive statements, each with the marks that follow it."""
    pending: str | None = None
    for piece in _pieces(masked):
        if not _WORD.search(_MARK.sub("", piece)):
            if pending is not None and _MARK.search(piece):
                pending += piece
            continue
        if pending is not None and _is_substantive(pending):
            yield pending
        pending = piece
    if pending is not None and _is_substantive(pending):
        yield pending


def _pieces(masked: str) -> Iterator[str]:
    """Sentences, and whole table rows, in order; headings and rulers are left out."""
    lines = masked.split("\n")
    prose: list[str] = []
    for number, line in enumerate(lines):
        is_row = bool(_ROW.fullmatch(line))
        if not is_row and not _HEADING.match(line):
            prose.append(_BULLET.sub("", line))
            continue
        yield from _sentences(prose)
        prose = []
        is_table_head = (
            number + 1 < len(lines) and "-" in lines[number + 1] and bool(_RULER.fullmatch(lines[number + 1]))
        )
        if is_row and not is_table_head and not _RULER.fullmatch(line):
            yield line
    yield from _sentences(prose)


def _sentences(lines: list[str]) -> Iterator[str]:
    # The splitter keeps marks with the sentence before them, in their plain form; nothing changes its length.
    text = "\n".join(lines)
    for sentence in split_sentences(_MARK.sub(lambda match: _plain_mark(len(match[0])), text)):
        yield text[sentence.start : sentence.end]


def _plain_mark(length: int) -> str:
    """A list of numbers in brackets, `length` ≥ 3 characters long."""
    inside = length - 2
    return f"[{'1,' if inside % 4 == 0 else ''}{('111,' * inside)[: inside - 2 if inside % 4 == 0 else inside]}]"


def _is_substantive(statement: str) -> bool:
    if _MARK.search(statement):
        return True
    bare = _CLOSING.sub("", statement)
    return not bare.endswith((":", "：", "?", "？")) and len(_WORD.findall(bare)) >= _LEAST_WORDS
