"""Which parser takes a file. A new format is a new module with one class, and one entry here."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from apps.kb.ingestion.parsers.markdown import MarkdownParser
from apps.kb.ingestion.parsers.plain_text import PlainTextParser
from apps.kb.ingestion.types import Parser
from docmind.errors import PermanentError

HEAD_BYTES: Final = 65_536

PARSERS: Final[tuple[Parser, ...]] = (MarkdownParser(), PlainTextParser())
"""The first that accepts a file gets it."""


def choose_parser(head: bytes, source_name: str) -> Parser:
    """The parser for a file that begins with `head`. Raises PermanentError `unsupported_file`."""
    for parser in PARSERS:
        if parser.accepts(head[:HEAD_BYTES], source_name):
            return parser
    raise PermanentError(
        _("The content of “%(name)s” is of no format that can be read. Markdown and plain text can.")
        % {"name": source_name},
        code="unsupported_file",
    )
