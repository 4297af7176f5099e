"""The values that pass between the steps of ingestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from docmind.text import Lang
from docmind.vectors.types import VectorRow


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStart:
    """Page `number` (from 1) begins at character `start` of the Markdown."""

    number: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """Any format after parsing: Markdown, to which all offsets refer, and a map from it to pages."""

    markdown: str
    parser: str
    pages: tuple[PageStart, ...] = ()
    doc_version: str = ""
    effective_date: date | None = None
    tags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


class Parser(Protocol):
    """A parser recognises its content and turns it into Markdown.

    `parse` raises PermanentError (codes `unsupported_file`, `empty_document`) with a message the uploader can act on.
    """

    name: str
    mime_type: str

    def accepts(self, head: bytes, source_name: str) -> bool:
        """Whether this parser takes the file, from its first bytes and, where they do not tell, its name."""
        ...

    def parse(self, content: bytes, source_name: str) -> ParsedDocument: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSizes:
    """Targets in characters. A child may reach `atomic_chars` where it must stay whole, a parent `parent_limit`."""

    child_chars: int = 400
    overlap_chars: int = 50
    parent_chars: int = 1500

    @property
    def atomic_chars(self) -> int:
        """The longest code block, table row or link that is kept whole."""
        return 2 * self.child_chars

    @property
    def parent_limit(self) -> int:
        return self.parent_chars * 4 // 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildChunk:
    """A searched passage: `content[prefix_chars:] == markdown[start:end]`.

    The prefix is empty but for a piece that begins inside a table: there it is the table's header, repeated.
    """

    index: int
    parent_index: int | None
    """Position in `ChunkedDocument.parents`; None where the child stands alone."""
    content: str
    prefix_chars: int = 0
    content_hash: str
    """SHA-256 over heading path and content: what is embedded and segmented."""
    start: int
    end: int
    heading_path: tuple[str, ...]
    page: int | None
    lang: Lang
    content_type: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentChunk:
    """A wider passage around neighbouring children of one section: stored, never searched.

    Its span holds its children's spans, and the same rule of the prefix holds.
    """

    first_child: int
    """Index of its first child."""
    content: str
    prefix_chars: int = 0
    content_hash: str
    start: int
    end: int
    heading_path: tuple[str, ...]
    page: int | None
    lang: Lang


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedDocument:
    parents: tuple[ParentChunk, ...]
    children: tuple[ChildChunk, ...]


class VectorIndex(Protocol):
    """What ingestion needs of `docmind.vectors.VectorStore`. Every call may raise TransientError."""

    def ensure_collection(self, name: str, dimension: int) -> None: ...

    def upsert(self, name: str, rows: Sequence[VectorRow]) -> None: ...

    def delete(self, name: str, ids: Sequence[int]) -> None: ...

    def delete_by_document(self, name: str, document_id: int) -> None: ...

    def iter_ids(self, name: str, document_id: int) -> set[int]:
        """The ids stored for a document."""
        ...
