"""The values that pass between the steps of ingestion."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from docmind.text import Lang


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStart:
    """Page `number` (from 1) begins at character `start` of the Markdown."""

    number: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """Any format after parsing: Markdown, and a map from it to pages. `markdown[start:end]` is what offsets refer to."""

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

    def accepts(self, head: bytes, source_name: str) -> bool:
        """Whether this parser takes the file, from its first bytes and, where they do not tell, its name."""
        ...

    def parse(self, content: bytes, source_name: str) -> ParsedDocument: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildChunk:
    """A searched passage: `markdown[start:end] == content`."""

    index: int
    parent_index: int | None
    """Position in `ChunkedDocument.parents`; None where the child stands alone."""
    content: str
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
    """A wider passage around neighbouring children of one section: stored, never searched."""

    content: str
    content_hash: str
    start: int
    end: int
    heading_path: tuple[str, ...]
    page: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedDocument:
    parents: tuple[ParentChunk, ...]
    children: tuple[ChildChunk, ...]
