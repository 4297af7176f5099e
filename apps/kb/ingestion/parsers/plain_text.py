"""Plain text: taken as it stands, since Markdown's marks are those that people type in plain text too."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from apps.kb.ingestion.parsers.decoding import decode_text, looks_like_text
from apps.kb.ingestion.types import ParsedDocument
from docmind.errors import PermanentError

_MARKUP = re.compile(r"\s*(?:<!doctype|<html|<head|<body|<\?xml|<svg)\b", re.IGNORECASE)


class PlainTextParser:
    name = "text"
    mime_type = "text/plain"

    def accepts(self, head: bytes, source_name: str) -> bool:
        return looks_like_text(head) and not _MARKUP.match(decode_text(head, whole=False))

    def parse(self, content: bytes, source_name: str) -> ParsedDocument:
        text = decode_text(content)
        if not text.strip():
            raise PermanentError(_("The document is empty."), code="empty_document")
        return ParsedDocument(markdown=text, parser=self.name)
