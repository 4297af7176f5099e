"""Splits normalised text into lexemes: runs of Han characters, runs of other unspaced scripts, and words.

A word is what a developer would copy as one piece: `server.shutdown`, `--max-old-space-size`, `/etc/my.cnf`, `C++`.
Segmentation and the search for identifiers read the same lexemes, so every identifier is also a search term.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LexemeKind = Literal["han", "unspaced", "word"]

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
# Scripts that write no space between words: kana, Thai and Lao, Myanmar, Khmer.
_UNSPACED = KANA + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Combining marks inside words, which \w does not cover: Latin, Hebrew, Arabic, the scripts of India.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_WORD = rf"(?:[^\W{HAN}{_UNSPACED}]|[{_MARKS}])"

_LEXEME = re.compile(
    rf"""
    (?P<han>[{HAN}]+)
  | (?P<unspaced>[{_UNSPACED}]+)
  | (?P<word>
      (?<![A-Za-z0-9_])[A-Za-z]{{1,2}}(?:\+\+|\#)(?![\w+\#])    # C++, C#
    | (?: (?<![A-Za-z0-9_.\-])--?(?=[A-Za-z])                   # --flag, -D
        | (?<![A-Za-z0-9_./])\.(?=[A-Za-z])                     # .env
        | (?<![A-Za-z0-9_./:<])/(?=[A-Za-z0-9_.])\.?            # /etc/hosts, but not </div>
      )?
      {_WORD}+ (?: (?: :// | :: | :\\ | [.\-/:@\\'] ) {_WORD}+ )*
    )
    """,
    re.VERBOSE,
)

# Invisible characters that may stand inside a word, and the apostrophe of typesetters.
_CLEANED = {ord(character): None for character in "\u00ad\u200b\u200c\u200d\u2060\ufeff"} | {ord("\u2019"): "'"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexeme:
    """One run of the normalised text; `text` keeps the case that was written."""

    kind: LexemeKind
    text: str


def normalize(text: str) -> str:
    """NFKC (full-width forms become half-width) without invisible characters; the case is kept."""
    return unicodedata.normalize("NFKC", text.translate(_CLEANED))


def scan(text: str) -> Iterator[Lexeme]:
    """The lexemes of `text` in order; punctuation and white space are dropped."""
    for match in _LEXEME.finditer(normalize(text)):
        if match["han"] is not None:
            yield Lexeme(kind="han", text=match["han"])
        elif match["unspaced"] is not None:
            yield Lexeme(kind="unspaced", text=match["unspaced"])
        elif any(map(str.isalnum, match["word"])):
            yield Lexeme(kind="word", text=match["word"])
