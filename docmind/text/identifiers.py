"""Identifiers: the names, keys, flags, versions and codes that must be found exactly as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docmind.text.lexemes import scan

MAX_IDENTIFIER_CHARS = 200

_SEPARATORS = tuple(re.compile(pattern) for pattern in (r"[/\\:@']+", r"\.+", r"-+", r"_+"))
_LEAD = re.compile(r"^(?:--?|/?\.|/)")
_VERSION = re.compile(
    r"^[vV]?(?P<number>(?P<minor>\d+\.\d+)(?:\.\d+)*)(?:[.\-_]?(?P<label>[A-Za-z][\w.\-]*))?$", re.ASCII
)
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLURAL_ACRONYM = re.compile(r"^[A-Z]{2,}s$")
_INITIALS = re.compile(r"^(?:[A-Za-z]\.)+[A-Za-z]$")
_DUNDER = re.compile(r"^__[a-z]+__$")
_ORDINAL = re.compile(r"^\d+(?:st|nd|rd|th)$", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]{2,}")
# Ports and error codes, and HTTP statuses; other numbers of three digits are mostly quantities.
_NUMERIC_CODE = re.compile(r"^(?:[45]\d\d|\d{4,6})$", re.ASCII)
_LETTER_AND_DIGIT = re.compile(r"[A-Za-z]\d|\d[A-Za-z]", re.ASCII)
_MAX_DIGIT_GROUPS = 3


def find_identifiers(text: str) -> tuple[str, ...]:
    """The distinct whole identifiers of `text` in order of appearance, in the case that was written, NFKC-normalised.

    A token counts if it mixes digits and letters (`E1205`), holds inner dots, hyphens or underscores
    (`server.shutdown`, `ERR_TIMEOUT`, `v2.3.9`), is in camel case, a flag, a path, an address, or a number that can be
    a port, an error code or an HTTP error. Flags of one letter are left out: as a substring they are everywhere.
    """
    words = (lexeme.text for lexeme in scan(text) if lexeme.kind == "word")
    return tuple(dict.fromkeys(word for word in words if is_identifier(word)))


def is_identifier(word: str) -> bool:
    """Whether one word lexeme is an identifier."""
    if len(word) > MAX_IDENTIFIER_CHARS or "'" in word or _INITIALS.match(word):
        return False
    if not word[0].isalnum() and word[0] != "_":
        return len(word) > 2
    if word.endswith(("+", "#")) or "://" in word or "::" in word or "@" in word or word.count("/") > 1:
        return True
    pieces = [piece for piece in _SEPARATORS[0].split(word) if piece]
    return any(map(_is_plain_identifier, pieces))


def _is_plain_identifier(word: str) -> bool:
    core = word.strip("_")  # _emphasis_ of Markdown
    if any(mark in core for mark in "._-") or _DUNDER.match(word):
        return not _INITIALS.match(word)
    word = core
    if _ORDINAL.match(word) or _PLURAL_ACRONYM.match(word):
        return False
    return bool(_CAMEL.search(word) or _NUMERIC_CODE.match(word) or _LETTER_AND_DIGIT.search(word))


def whole_and_parts(word: str) -> list[str]:
    """The distinct search terms of one word, whole form first, case as written.

    `server.shutdown` → `server.shutdown`, `server`, `shutdown`; `maxPoolSize` → itself, `max`, `Pool`, `Size`;
    `--port` → `--port`, `port`; `v2.3.9` → `v2.3.9`, `2.3.9`, `2.3`. Parts of one character are dropped.
    """
    if _INITIALS.match(word):
        return [word, word.replace(".", "")]
    core = _LEAD.sub("", word).rstrip("+#") or word
    return list(dict.fromkeys([word, core, *(part for part in _parts(core) if len(part) > 1)]))


def _parts(word: str) -> Iterator[str]:
    """Splits at the strongest separator present and descends; the depth is bounded by the number of separators."""
    if version := _VERSION.match(word):
        yield from (word, version["number"], version["minor"])
        if label := version["label"]:
            yield from _parts(label)
        return
    yield word
    for separator in _SEPARATORS:
        pieces = [piece for piece in separator.split(word) if piece]
        if pieces != [word]:
            for piece in pieces:
                yield from _parts(piece)
            return
    yield from _humps(word)


def _humps(word: str) -> Iterator[str]:
    if not word.isascii():
        return
    if _PLURAL_ACRONYM.match(word):
        yield word[:-1]
        return
    humps = _HUMP.findall(word)
    # Digests and random keys would fall into noise.
    if len(humps) > 1 and sum(map(str.isdigit, humps)) <= _MAX_DIGIT_GROUPS:
        yield from humps
