"""Tells the language of a passage by the shares of scripts, which is enough to choose a retrieval lane."""

from __future__ import annotations

import re
from typing import Literal

from docmind.text.lexemes import HAN, HANGUL, KANA

Lang = Literal["zh", "en", "other"]

# Chinese technical prose is full of English names: a fifth of the units in Han characters makes a text Chinese.
_EAST_ASIAN_SHARE = 0.2
# Japanese prose is a third kana or more, a dense title a sixth; a Chinese text that quotes a name stays under that.
_NOT_CHINESE_SHARE = 0.15

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_INLINE_CODE_OR_ADDRESS = re.compile(r"`[^`\n]+`|https?://[!-~]+")
_HAN = re.compile(rf"[{HAN}]")
_KANA_OR_HANGUL = re.compile(rf"[{KANA}{HANGUL}\uff66-\uff9d]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\uff21-\uff3a\uff41-\uff5a]+")
_OTHER_WORD = re.compile(rf"[^\W\d_A-Za-z\u00c0-\u024f\uff21-\uff3a\uff41-\uff5a{HAN}{KANA}{HANGUL}\uff66-\uff9d]+")


def detect_language(text: str) -> Lang:
    """`zh`, `en` (Latin script) or `other` (other scripts, Japanese, Korean, no letters).

    Code is left out when there is prose beside it. Units are Han, kana and Hangul characters, and words elsewhere.
    """
    return _by_script(_prose(text)) or _by_script(text) or "other"


def _by_script(text: str) -> Lang | None:
    """None if `text` holds no letter."""
    han = len(_HAN.findall(text))
    kana_or_hangul = len(_KANA_OR_HANGUL.findall(text))
    latin = len(_LATIN_WORD.findall(text))
    other = len(_OTHER_WORD.findall(text))
    east_asian = han + kana_or_hangul
    total = east_asian + latin + other
    if not total:
        return None
    if east_asian >= _EAST_ASIAN_SHARE * total and east_asian >= other:
        return "other" if kana_or_hangul > _NOT_CHINESE_SHARE * east_asian else "zh"
    return "en" if latin > other else "other"


def _prose(text: str) -> str:
    """`text` without fenced blocks, inline code and addresses."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opened:
            fence = opened[1]
        else:
            kept.append(line)
    return _INLINE_CODE_OR_ADDRESS.sub(" ", "\n".join(kept))
