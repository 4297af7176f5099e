"""Splits Chinese and English text into sentences, with offsets.

One pass over the candidate marks; each is judged by a bounded number of characters around it: the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docmind.text.lexemes import HAN

_MARK = re.compile(r"[。！？；…!?;.．｡]+|[\r\n\u2028\u2029]+")
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_FULL_WIDTH = frozenset("。！？；…｡")
_CLOSERS = re.compile(r"[\"'”’」』）)\]】》〉*_~]*")
_CITATIONS = re.compile(r"(?:[ \t]?(?:\[\d{1,3}(?:[,，、] ?\d{1,3})*\]|【\d{1,3}(?:[,，、] ?\d{1,3})*】))+(?!\()")
_LAST_WORD = re.compile(r"[A-Za-z0-9.]*\Z")
_LIST_NUMBER = re.compile(r"[ \t>*-]*(?:\d{1,3}|[A-Za-z])\Z")
_FOLLOWING = re.compile(rf"[\s{HAN}“‘「『（【《\"'`*_]|\Z")
_NEXT_CAPITAL = re.compile(r"\s+[A-Z]|\s*\Z|\s*[^\x00-\x7f]")
_LOOK_BEHIND_CHARS = 16

# Never at a sentence's end, or so seldom that joining is the smaller error.
_ABBREVIATION = re.compile(
    r"e\.g|i\.e|eg|ie|cf|vs|viz|approx|incl|resp|ca|al|figs?|eqs?|sec|ch|vol|pp|eds?|ver|v|mr|mrs|ms|dr|prof|st"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
# At a sentence's end if a capital follows.
_MAYBE_FINAL = re.compile(r"etc|inc|ltd|co|corp|jr|sr|no|dept|est|a\.m|p\.m|u\.s|u\.k|ph\.d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """`text` is `source[start:end]`, without white space at either end; offsets count characters."""

    start: int
    end: int
    text: str


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of `text` in order; together they hold every character that is not white space.

    Ends are 。！？；… and, where something other than a letter follows, ! ? ; . and every line break. Closing quotes,
    brackets and citation marks (`[1]`) stay with the sentence before them. Abbreviations, decimals, versions, file
    names, list numbers and inline code are not split.
    """
    sentences = []
    start = 0
    for end in (*_ends(text), len(text)):
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            begin = start + len(piece) - len(piece.lstrip())
            sentences.append(Sentence(start=begin, end=begin + len(stripped), text=stripped))
        start = end
    return sentences


def _ends(text: str) -> Iterator[int]:
    """Offsets just behind each sentence, increasing."""
    codes = _INLINE_CODE.finditer(text)
    code = next(codes, None)
    reached = 0
    for mark in _MARK.finditer(text):
        while code is not None and code.end() <= mark.start():
            code = next(codes, None)
        if mark.start() < reached or (code is not None and code.start() < mark.start()):
            continue
        if _is_end(text, mark):
            reached = _attach(text, mark.end())
            yield reached


def _attach(text: str, end: int) -> int:
    """Moves `end` behind closing quotes, brackets and citations."""
    end = _match_end(_CLOSERS, text, end)
    return _match_end(_CITATIONS, text, end)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _is_end(text: str, mark: re.Match[str]) -> bool:
    marks = mark[0]
    if marks.isspace() or not _FULL_WIDTH.isdisjoint(marks):
        return True
    if not _FOLLOWING.match(text, _attach(text, mark.end())):
        return False
    if marks == ".":
        return not _is_inner_dot(text, mark.start())
    # A mark alone between spaces, as in `a ? b : c`, is an operator.
    return mark.start() > 0 and not text[mark.start() - 1].isspace()


def _is_inner_dot(text: str, dot: int) -> bool:
    """Whether the dot at `dot`, followed by a space or the like, belongs to an abbreviation or a list number."""
    before = text[max(0, dot - _LOOK_BEHIND_CHARS) : dot]
    last = _LAST_WORD.search(before)
    word = last[0].lower() if last else ""
    if not word:
        return before[-1:].isspace() or not before
    line = before.rsplit("\n", 1)
    if (len(line) > 1 or len(before) == dot) and _LIST_NUMBER.match(line[-1]):
        return True
    if _ABBREVIATION.fullmatch(word):
        return True
    if _MAYBE_FINAL.fullmatch(word):
        return not _NEXT_CAPITAL.match(text, dot + 1)
    # The initial of a name: J. Smith.
    return len(word) == 1 and before[-1:].isupper() and before[-1:] != "I" and dot + 1 < len(text)
