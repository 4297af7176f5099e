"""What is put into the vector store, what is asked of it and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TAG_LIMIT = 64
TAG_LIMIT_BYTES = 512
LANG_LIMIT_BYTES = 16
CONTENT_TYPE_LIMIT_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """One vector and the scalar fields that it can be filtered by. A row with the same id replaces the old one."""

    id: int
    kb_id: int
    document_id: int
    lang: str
    content_type: str
    tags: tuple[str, ...]
    vector: Sequence[float]
    """As many finite numbers as the collection has dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorHit:
    id: int
    score: float
    """Cosine similarity, −1..1."""
    vector: tuple[float, ...] | None
    """The stored vector, where the search asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFilter:
    """Which rows may be found. None leaves a field free; an empty set lets nothing through.

    The parts are joined with "and"; within `tags`, one that the row carries is enough.
    """

    kb_ids: frozenset[int]
    document_ids: frozenset[int] | None = None
    langs: frozenset[str] | None = None
    tags: frozenset[str] | None = None

    @property
    def matches_nothing(self) -> bool:
        """Whether the answer is empty whatever is stored, so that no call is needed."""
        optional = (self.document_ids, self.langs, self.tags)
        return not self.kb_ids or any(part is not None and not part for part in optional)
