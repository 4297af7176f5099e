"""Markdown, with front matter. The text stays as it is, but for images whose content stands in the address itself."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from apps.kb.ingestion.parsers.decoding import decode_text, looks_like_text
from apps.kb.ingestion.parsers.front_matter import read_front_matter
from apps.kb.ingestion.types import ParsedDocument
from docmind.errors import PermanentError

SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdx")
_FIRST_HEADING = re.compile(r"\s*#{1,2}\s")
_SIGNS = re.compile(r"\A(?:---\n|\s*#{1,6} \S)|^(?:```|~~~|\|[ :]?-{3,})", re.MULTILINE)
_INLINE_DATA = re.compile(r"(?<=\()data:[\w/+.;=-]{0,100},[^)\s]*")


class MarkdownParser:
    name = "markdown"
    mime_type = "text/markdown"

    def accepts(self, head: bytes, source_name: str) -> bool:
        if not looks_like_text(head):
            return False
        return source_name.lower().endswith(SUFFIXES) or bool(_SIGNS.search(decode_text(head, whole=False)))

    def parse(self, content: bytes, source_name: str) -> ParsedDocument:
        text = decode_text(content)
        front = read_front_matter(text)
        body, dropped = _INLINE_DATA.subn("", text[front.body_start :])
        if not body.strip():
            raise PermanentError(_("The document is empty."), code="empty_document")
        if front.title and not _FIRST_HEADING.match(body):
            body = f"# {front.title}\n\n{body}"
        return ParsedDocument(
            markdown=body,
            parser=self.name,
            doc_version=front.doc_version,
            effective_date=front.effective_date,
            tags=front.tags,
            warnings=(f"inline images dropped: {dropped}",) if dropped else (),
        )
