"""Markdown to chunks: sections (blocks.py), packed into children and parents (packing.py), described.

Children are what is searched; parents hold two or more neighbouring children of one section. A child alone in its
section has no parent. Equal text under equal headings gives equal hashes, wherever it stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from apps.kb.ingestion.blocks import Section, read_sections
from apps.kb.ingestion.content_types import classify
from apps.kb.ingestion.indexed_text import content_hash, join_headings
from apps.kb.ingestion.packing import Piece, group, pack
from apps.kb.ingestion.types import ChildChunk, ChunkedDocument, ChunkSizes, PageStart, ParentChunk, ParsedDocument
from docmind.text import Lang, detect_language

MAX_TAGS = 16
MAX_TAG_CHARS = 64


def chunk_document(
    parsed: ParsedDocument, sizes: ChunkSizes, *, beat: Callable[[], None] | None = None
) -> ChunkedDocument:
    """All chunks of a document in reading order; none if it holds no letter and no digit.

    `beat` is called after each section: a large document takes longer than a heartbeat may.
    """
    pages = _Pages(parsed.pages)
    children: list[ChildChunk] = []
    parents: list[ParentChunk] = []
    for section in read_sections(parsed.markdown):
        pieces = pack(parsed.markdown, section.blocks, sizes)
        groups = group(pieces, sizes)
        parent_of = {member: len(parents) + offset for offset, members in enumerate(groups) for member in members}
        first_index = len(children)
        for position, piece in enumerate(pieces):
            index = first_index + position
            children.append(_child(parsed, section, piece, index, parent_of.get(position), pages))
        for members in groups:
            first, last = children[first_index + members[0]], children[first_index + members[-1]]
            parents.append(_parent(parsed.markdown, pieces[members[0]], first, last))
        if beat is not None:
            beat()
    return ChunkedDocument(parents=tuple(parents), children=tuple(children))


def _child(
    parsed: ParsedDocument, section: Section, piece: Piece, index: int, parent_index: int | None, pages: _Pages
) -> ChildChunk:
    content = _prefix(parsed.markdown, piece) + parsed.markdown[piece.start : piece.end]
    return ChildChunk(
        index=index,
        parent_index=parent_index,
        content=content,
        prefix_chars=piece.prefix_chars,
        content_hash=content_hash(join_headings(section.headings), content),
        start=piece.start,
        end=piece.end,
        heading_path=section.headings,
        page=pages.page_at(piece.core_start),
        lang=_language(section.headings, content),
        content_type=classify(section.headings, content),
        tags=_tags(parsed.tags, section.headings),
    )


def _parent(markdown: str, piece: Piece, first: ChildChunk, last: ChildChunk) -> ParentChunk:
    content = _prefix(markdown, piece) + markdown[first.start : last.end]
    return ParentChunk(
        first_child=first.index,
        content=content,
        prefix_chars=piece.prefix_chars,
        content_hash=content_hash(join_headings(first.heading_path), content),
        start=first.start,
        end=last.end,
        heading_path=first.heading_path,
        page=first.page,
        lang=first.lang,
    )


def _prefix(markdown: str, piece: Piece) -> str:
    return markdown[piece.prefix[0] : piece.prefix[1]] + "\n" if piece.prefix else ""


def _language(headings: tuple[str, ...], content: str) -> Lang:
    """The content's own language; the headings speak for a content without letters."""
    language = detect_language(content)
    return language if language != "other" or not headings else detect_language("\n".join((*headings, content)))


def _tags(document_tags: tuple[str, ...], headings: tuple[str, ...]) -> tuple[str, ...]:
    distinct = dict.fromkeys(tag[:MAX_TAG_CHARS].strip() for tag in (*document_tags, *headings))
    return tuple(filter(None, distinct))[:MAX_TAGS]


class _Pages:
    def __init__(self, pages: tuple[PageStart, ...]) -> None:
        self._starts = [page.start for page in pages]
        self._numbers = [page.number for page in pages]

    def page_at(self, place: int) -> int | None:
        position = bisect_right(self._starts, place) - 1
        return self._numbers[position] if position >= 0 else None
