"""A document's Markdown as a page, with one passage marked.

1. The source is cut into parts of about PART_CHARS at headings or blank lines; one part is shown at a time.
2. The part's top-level blocks that the passage touches are rendered apart from what stands before and after them.
3. Rendered text is, but for markup, a subsequence of its source. Walking along both gives each rendered character its
   place in the source, and those inside the passage are wrapped in <mark>.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser
from typing import Final

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from docmind.text import render_markdown

PART_CHARS: Final = 150_000
SEEK_CHARS: Final = 20_000
"""How far a cut may move to stand at a heading."""
LONGEST_MARKUP_CHARS: Final = 1_000
"""Markup between two rendered characters (a link's address) is taken to be shorter than this."""
_NEWLINE: Final = re.compile(r"\r\n?|\n")
_HEADING: Final = re.compile(r"^#{1,6} ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """One part of a document, rendered. `number` counts from 1."""

    html: SafeString
    number: int
    count: int
    has_passage: bool


def render_part(markdown: str, *, number: int = 1, passage: tuple[int, int] | None = None) -> DocumentPart:
    """The part that holds the passage, else the numbered one. Offsets are characters of `markdown`."""
    starts = _part_starts(markdown)
    if passage is not None:
        number = sum(1 for start in starts if start <= passage[0])
    number = min(max(number, 1), len(starts))
    begin = starts[number - 1]
    end = starts[number] if number < len(starts) else len(markdown)
    source = markdown[begin:end]
    if passage is None:
        html = str(render_markdown(source))
    else:
        html = _render_with_passage(source, passage[0] - begin, min(passage[1] - begin, len(source)))
    return DocumentPart(
        html=mark_safe(html),  # noqa: S308 - render_markdown's output, text escaped again
        number=number,
        count=len(starts),
        has_passage=passage is not None,
    )


def clamp_passage(markdown: str, start: int | None, end: int | None) -> tuple[int, int] | None:
    """The passage within the document, without the white space around it; None where nothing is left."""
    if start is None or end is None:
        return None
    start, end = max(start, 0), min(end, len(markdown))
    text = markdown[start:end]
    if not text.strip():
        return None
    return start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def _part_starts(markdown: str) -> list[int]:
    starts = [0]
    while len(markdown) - starts[-1] > PART_CHARS + SEEK_CHARS:
        wanted = starts[-1] + PART_CHARS
        heading = _HEADING.search(markdown, wanted, wanted + SEEK_CHARS)
        blank = markdown.find("\n\n", wanted, wanted + SEEK_CHARS)
        starts.append(heading.start() if heading else blank + 2 if blank >= 0 else wanted)
    return starts


def _render_with_passage(source: str, start: int, end: int) -> str:
    touched = [(first, last) for first, last in _blocks(source) if last > start and first < end]
    if not touched:
        return str(render_markdown(source))
    first, last = touched[0][0], touched[-1][1]
    before, inside, after = (str(render_markdown(text)) for text in (source[:first], source[first:last], source[last:]))
    marked = _Marker(source[first:last], start - first, end - first).mark(inside)
    return f'{before}<section class="passage" id="passage" tabindex="-1">{marked}</section>{after}'


def _blocks(source: str) -> list[tuple[int, int]]:
    """Character ranges of the top-level blocks, in order, as `render_markdown` sees them."""
    line_starts = [0, *(match.end() for match in _NEWLINE.finditer(source)), len(source)]
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table")
    tokens = parser.disable(["reference", "html_block", "inline"]).parse(source)
    return [
        (line_starts[token.map[0]], line_starts[min(token.map[1], len(line_starts) - 1)])
        for token in tokens
        if token.level == 0 and token.nesting >= 0 and token.map
    ]


class _Marker(HTMLParser):
    """Wraps the rendered characters that stand between two offsets of the source."""

    def __init__(self, source: str, start: int, end: int) -> None:
        super().__init__(convert_charrefs=True)
        self._source, self._start, self._end = source, start, end
        self._place = 0
        self._inside = False
        self._out: list[str] = []

    def mark(self, html: str) -> str:
        self.feed(html)
        self.close()
        return "".join(self._out)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not data.strip() and "\n" in data:  # between blocks, rows and cells, where no <mark> may stand
            self._out.append(escape(data, quote=False))
            return
        run: list[str] = []
        run_inside = self._inside
        for character in data:
            if not character.isspace():
                self._advance(character)
            if self._inside != run_inside:
                self._write(run, run_inside)
                run, run_inside = [], self._inside
            run.append(character)
        self._write(run, run_inside)

    def _advance(self, character: str) -> None:
        found = self._source.find(character, self._place, self._place + LONGEST_MARKUP_CHARS)
        if found >= 0:
            self._place = found + 1
            self._inside = self._start <= found < self._end

    def _write(self, run: list[str], inside: bool) -> None:
        text = escape("".join(run), quote=False)
        # The white space that ends a passage is not part of it.
        bare = text if self._place < self._end else text.rstrip()
        self._out.append(f"<mark>{bare}</mark>{text[len(bare) :]}" if inside and bare else text)
