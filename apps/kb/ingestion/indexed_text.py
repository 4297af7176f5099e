"""What is embedded, segmented and hashed of a chunk: the heading path, then the content. Never the file's name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

SEPARATOR = " > "
MAX_PATH_CHARS = 1000


def join_headings(headings: Sequence[str]) -> str:
    """The heading path as it is stored; whole headings are left out at the front where it would grow too long."""
    path = SEPARATOR.join(headings)
    while len(path) > MAX_PATH_CHARS:
        headings = headings[1:] if len(headings) > 1 else (headings[0][:MAX_PATH_CHARS],)
        path = SEPARATOR.join(headings)
    return path


def indexed_text(heading_path: str, content: str) -> str:
    """One heading a line, then the content. `heading_path` is the stored form."""
    if not heading_path:
        return content
    return "\n".join((*heading_path.split(SEPARATOR), content))


def content_hash(heading_path: str, content: str) -> str:
    """SHA-256, in hex, by which an unchanged chunk is recognised."""
    return hashlib.sha256(indexed_text(heading_path, content).encode("utf-8", "surrogatepass")).hexdigest()
