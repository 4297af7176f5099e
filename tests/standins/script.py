"""What a stand-in answers: a scripted reply, or one made from the prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# `<passage n="1" …>text</passage>`, or `[1] text` up to the next number.
_FIRST_PASSAGE = re.compile(
    r"<passage\s+n=\"1\"[^>]*>(?P<fenced>.*?)</passage>|^\s*\[1\][ \t:：]*(?P<numbered>.*?)(?=\n\s*\[\d{1,3}\]|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PIECE_CHARS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply. `status` other than 200 makes it an error; the faults come after so many pieces of text."""

    pieces: tuple[str, ...] = ("ok",)
    thinking: tuple[str, ...] = ()
    first_delay_s: float = 0.0
    delay_s: float = 0.0
    """Before each piece but the first."""
    finish_reason: Literal["stop", "length"] | None = "stop"
    has_usage: bool = True
    is_bare: bool = False
    """Leave out all fields that a careless server leaves out (OpenAI only)."""
    status: int = 200
    error_code: str = ""
    error_message: str = "scripted error"
    is_error_plain: bool = False
    """The error's body is not JSON, as a gateway sends it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    drop_connection: bool = False
    """Close the connection without any response."""
    cut_after: int | None = None
    """Close the connection after so many pieces."""
    hang_after: int | None = None
    """Send nothing more after so many pieces, until the client goes away."""
    malformed_after: int | None = None
    """Send a piece that is no JSON after so many pieces."""
    error_after: int | None = None
    """Send an error event with `error_code` after so many pieces."""


def from_prompt(messages: Sequence[Mapping[str, Any]], *, delay_s: float = 0.0, first_delay_s: float = 0.0) -> Reply:
    """Quote the first sentence of passage 1 with its `[1]`; without passages, say that there were none."""
    prompt = "\n".join(str(message.get("content", "")) for message in messages)
    found = _FIRST_PASSAGE.search(prompt)
    sentence = _first_sentence(found["fenced"] or found["numbered"] or "") if found else ""
    text = f"{sentence} [1]" if sentence else "The prompt holds no passage."
    pieces = tuple(text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
    return Reply(pieces=pieces, delay_s=delay_s, first_delay_s=first_delay_s)


def _first_sentence(passage: str) -> str:
    """The first sentence of some length that is no heading."""
    for line in passage.splitlines():
        if line.lstrip().startswith(("#", "|", "```", ">", "<")):
            continue
        for sentence in re.split(r"(?<=[。！？])|(?<=[.!?])\s", line):
            if len(sentence.strip()) >= 8:
                return sentence.strip()
    return ""
