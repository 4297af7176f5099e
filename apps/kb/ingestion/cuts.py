"""Where a text may be cut: sentences and lines, and what must stay in one piece (links, addresses, inline code)."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

from docmind.text import split_sentences

Span = tuple[int, int]

WINDOW_CHARS = 65_536
"""Longer paragraphs are looked at in windows, so that memory stays bounded."""
MAX_LINK_CHARS = 1600
_WHOLE = re.compile(
    r"!?\[[^\[\]]{0,300}\]\([^()\n]{0,500}(?:\([^()\n]{0,200}\)[^()\n]{0,200}){0,2}\)"  # [text](address)
    r"|<https?://[^<>\s]{1,1000}>"
    r"|https?://[!-;=?-~]{1,1000}"
    r"|`[^`\n]{1,300}`"
)
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_BREAK = re.compile(r"[。！？；.!?;\n]+[”’」』）)]*\s*|\s+")


def whole_spans(text: str, start: int, end: int) -> list[Span]:
    """The spans inside `text[start:end]` that must not be cut, in order, not overlapping."""
    return [match.span() for match in _WHOLE.finditer(text, start, end)]


def sentence_spans(text: str, start: int, end: int, *, limit: int, atomic: int) -> Iterator[Span]:
    """`text[start:end]` as sentences and lines. One longer than `limit` is cut, but for a link up to `atomic`."""
    for window_start, window_end in _windows(text, start, end):
        whole = whole_spans(text, window_start, window_end)
        opened: int | None = None
        for sentence in split_sentences(text[window_start:window_end]):
            first, last = window_start + sentence.start, window_start + sentence.end
            opened = first if opened is None else opened
            if _around(whole, last) is None:
                yield from cut_spans(text, opened, last, whole, limit=limit, atomic=atomic)
                opened = None
        if opened is not None:
            yield from cut_spans(text, opened, window_end, whole, limit=limit, atomic=atomic)


def line_spans(text: str, start: int, end: int, *, atomic: int) -> Iterator[Span]:
    """`text[start:end]` line by line, empty lines left out; a line longer than `atomic` is cut."""
    while start < end:
        line_end = text.find("\n", start, end)
        line_end = end if line_end < 0 else line_end
        if not text[start:line_end].isspace() and line_end > start:
            yield from cut_spans(text, start, line_end, (), limit=atomic, atomic=atomic)
        start = line_end + 1


def cut_spans(
    text: str, start: int, end: int, whole: list[Span] | tuple[()], *, limit: int, atomic: int
) -> Iterator[Span]:
    """`text[start:end]` in pieces of at most `limit` characters, preferably cut at white space."""
    while end - start > limit:
        cut = start + limit
        span = _around(whole, cut)
        if span is not None and span[0] > start:
            cut = span[0]
        elif span is not None and span[1] - start <= atomic:
            cut = span[1]
        else:
            cut = _at_space(text, start, cut)
            # A cut before a combining mark would tear a character apart.
            while cut < end and (unicodedata.combining(text[cut]) or text[cut] in _JOINERS) and cut - start < atomic:
                cut += 1
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def overlap_start(text: str, start: int, floor: int, chars: int) -> int:
    """Where a piece that begins at `start` begins when it takes up to `chars` from before it, not from before `floor`.

    It then begins at a sentence or line, else at a word, else (no white space, as in Chinese) at any character.
    """
    earliest = max(floor, start - chars)
    if earliest >= start:
        return start
    whole = whole_spans(text, max(floor, earliest - MAX_LINK_CHARS), start)
    candidates = [match.end() for match in _BREAK.finditer(text, earliest, start) if match.end() < start]
    at_sentence = [place for place in candidates if text[place - 1] == "\n" or not text[place - 1].isspace()]
    for place in (*([earliest] if earliest == floor else []), *at_sentence, *candidates, earliest):
        if _around(whole, place) is None and not unicodedata.combining(text[place]) and text[place] not in _JOINERS:
            while place < start and text[place].isspace():
                place += 1
            return place
    return start


def _around(whole: list[Span] | tuple[()], place: int) -> Span | None:
    """The span that a cut at `place` would tear apart."""
    index = bisect_right(whole, (place, -1)) - 1
    if index >= 0 and whole[index][0] < place < whole[index][1]:
        return whole[index]
    return None


def _at_space(text: str, start: int, cut: int) -> int:
    earliest = cut - (cut - start) // 4
    for place in range(cut, earliest, -1):
        if text[place - 1].isspace():
            return place
    return cut


def _windows(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > WINDOW_CHARS:
        cut = text.rfind("\n", start + WINDOW_CHARS // 2, start + WINDOW_CHARS) + 1
        if cut <= 0:
            cut = start + WINDOW_CHARS
            span = _around(whole_spans(text, cut - MAX_LINK_CHARS, min(end, cut + MAX_LINK_CHARS)), cut)
            cut = span[1] if span else cut
        yield start, cut
        start = cut
    yield start, end
