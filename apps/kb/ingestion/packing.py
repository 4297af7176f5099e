"""Packs a section's blocks into pieces (later child chunks) and pieces into groups (later parents).

1. A block that fits into the open piece joins it; a paragraph may exceed the target by a quarter to stay whole.
2. One that does not fit begins a new piece if the open one is at least half full, else it is taken apart:
   text into sentences and lines, code into lines, a table into rows.
3. Code, a table row or a link up to `ChunkSizes.atomic_chars` stays whole. A piece that begins inside a table gets
   the table's header as its prefix.
4. A piece that begins after text takes up to `overlap_chars` of it along, never out of code or a table.
5. A short last piece joins the one before it.
Everything depends on the section's own text alone, so an edit moves no boundary in another section.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.kb.ingestion.blocks import Block, BlockKind
from apps.kb.ingestion.cuts import Span, line_spans, overlap_start, sentence_spans
from apps.kb.ingestion.types import ChunkSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`text[start:end]`, whose part from `core_start` on is in no other piece. `prefix`: a repeated table header."""

    start: int
    core_start: int
    end: int
    prefix: Span | None = None

    @property
    def prefix_chars(self) -> int:
        """Length of the header with its line end."""
        return self.prefix[1] - self.prefix[0] + 1 if self.prefix else 0

    @property
    def size(self) -> int:
        return self.end - self.start + self.prefix_chars


def pack(text: str, blocks: list[Block], sizes: ChunkSizes) -> list[Piece]:
    """The pieces of one section, in order."""
    packer = _Packer(text, sizes)
    for block in blocks:
        packer.add_block(block)
    packer.flush()
    return _join_tail(packer.pieces, sizes)


def group(pieces: list[Piece], sizes: ChunkSizes) -> list[list[int]]:
    """Positions of the pieces that share a parent; a piece in no group stands alone."""
    groups: list[list[int]] = []
    for position in range(len(pieces)):
        # A piece that would be left alone may exceed the target: the last one, and the one after a first that is alone.
        is_needed = position == len(pieces) - 1 or (bool(groups) and len(groups[-1]) == 1)
        limit = sizes.parent_limit if is_needed else sizes.parent_chars
        if groups and _span(pieces, groups[-1][0], position) <= limit:
            groups[-1].append(position)
        else:
            groups.append([position])
    return [members for members in groups if len(members) > 1]


class _Packer:
    def __init__(self, text: str, sizes: ChunkSizes) -> None:
        self.text = text
        self.sizes = sizes
        self.pieces: list[Piece] = []
        self.open: Piece | None = None
        self.last_kind: BlockKind | None = None
        self.text_floor = 0
        """Where the text began that stands right before the place reached; overlap reaches back no further."""

    def add_block(self, block: Block) -> None:
        soft = self.sizes.child_chars * 5 // 4
        length = block.end - block.start
        if block.kind == "text" and self.last_kind != "text":
            self.text_floor = block.start
        if self._fits(block.end, soft):
            self._take(block.start, block.end)
        elif block.kind != "text" and length <= self.sizes.atomic_chars:
            keeps_intro = self._size() < self.sizes.child_chars // 2 and self._fits(block.end, self.sizes.atomic_chars)
            if not keeps_intro:
                self.flush()
            self._take(block.start, block.end)
        else:
            if self._size() >= self.sizes.child_chars // 2:
                self.flush()
            self._take_apart(block, soft)
        self.last_kind = block.kind

    def flush(self) -> None:
        if self.open is not None:
            self.pieces.append(self.open)
            self.open = None

    def _take_apart(self, block: Block, soft: int) -> None:
        sizes, text = self.sizes, self.text
        if block.kind == "table":
            self._take_rows(block)
        elif block.kind == "code":
            for start, end in line_spans(text, block.start, block.end, atomic=sizes.atomic_chars):
                self._take_or_begin(start, end)
                self.last_kind = "code"
        elif self.open is None and block.end - block.start <= soft:
            self._take(block.start, block.end)
        else:
            limit, atomic = sizes.child_chars, sizes.atomic_chars
            for start, end in sentence_spans(text, block.start, block.end, limit=limit, atomic=atomic):
                self._take_or_begin(start, end)
                self.last_kind = "text"

    def _take_rows(self, block: Block) -> None:
        header: Span | None = (block.start, block.header_end)
        if block.header_end - block.start > self.sizes.child_chars:
            header = None
        rows = list(line_spans(self.text, block.header_end, block.end, atomic=self.sizes.atomic_chars))
        if header and rows:
            self._take_or_begin(block.start, rows.pop(0)[1])
        else:
            for start, end in line_spans(self.text, block.start, block.header_end, atomic=self.sizes.atomic_chars):
                self._take_or_begin(start, end)
                self.last_kind = "table"
        self.last_kind = "table"
        for start, end in rows:
            self._take_or_begin(start, end, prefix=header)

    def _take_or_begin(self, start: int, end: int, *, prefix: Span | None = None) -> None:
        if self.open is not None and not self._fits(end, self.sizes.child_chars):
            self.flush()
        self._take(start, end, prefix)

    def _take(self, start: int, end: int, prefix: Span | None = None) -> None:
        if self.open is not None:
            self.open = replace(self.open, end=end)
            return
        first = start
        if self.pieces and self.last_kind == "text":
            floor = max(self.text_floor, self.pieces[-1].core_start)
            first = overlap_start(self.text, start, floor, self.sizes.overlap_chars)
        self.open = Piece(start=first, core_start=start, end=end, prefix=prefix)

    def _fits(self, end: int, limit: int) -> bool:
        piece = self.open
        return piece is not None and end - piece.core_start + piece.prefix_chars <= limit

    def _size(self) -> int:
        piece = self.open
        return 0 if piece is None else piece.end - piece.core_start + piece.prefix_chars


def _join_tail(pieces: list[Piece], sizes: ChunkSizes) -> list[Piece]:
    if len(pieces) < 2:
        return pieces
    before, tail = pieces[-2], pieces[-1]
    joined = replace(before, end=tail.end)
    is_short = tail.end - tail.core_start < sizes.child_chars // 5
    if is_short and tail.prefix is None and joined.end - joined.core_start <= sizes.child_chars * 5 // 4:
        return [*pieces[:-2], joined]
    return pieces


def _span(pieces: list[Piece], first: int, last: int) -> int:
    return pieces[last].end - pieces[first].start + pieces[first].prefix_chars
