"""Where a document's files lie: the original, and each revision's Markdown with what the parser found out beside it.

A document has a folder of its own. Markdown is written first, its side file with the checksum last: only a Markdown
file that its side file vouches for counts as written.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from datetime import date
from pathlib import PurePosixPath

from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage

from apps.kb.ingestion.types import PageStart, ParsedDocument
from docmind.telemetry import get_logger

logger = get_logger(__name__)

MAX_SUFFIX_CHARS = 12


def store_original(kb_id: int, source_name: str, file: File[bytes]) -> str:
    """Stores an upload under a fresh key and returns the key."""
    suffix = PurePosixPath(source_name).suffix.lower()
    kept = suffix if suffix[1:].isalnum() and suffix.isascii() and len(suffix) <= MAX_SUFFIX_CHARS else ""
    return default_storage.save(f"kb/{kb_id}/{uuid.uuid4().hex}/original{kept}", file)


def markdown_key(storage_key: str, revision: int) -> str:
    """The key of a revision's Markdown: in the original's folder."""
    return str(PurePosixPath(storage_key).parent / f"r{revision}.md")


def store_parsed(key: str, parsed: ParsedDocument) -> None:
    """Writes Markdown and side file, over whatever a crash has left there."""
    octets = parsed.markdown.encode()
    facts = {
        "sha256": hashlib.sha256(octets).hexdigest(),
        "parser": parsed.parser,
        "pages": [[page.number, page.start] for page in parsed.pages],
        "doc_version": parsed.doc_version,
        "effective_date": parsed.effective_date.isoformat() if parsed.effective_date else None,
        "tags": list(parsed.tags),
        "warnings": list(parsed.warnings),
    }
    remove((key, _facts_key(key)))
    default_storage.save(key, ContentFile(octets))
    default_storage.save(_facts_key(key), ContentFile(json.dumps(facts, ensure_ascii=False).encode()))


def load_parsed(key: str) -> ParsedDocument | None:
    """What `store_parsed` wrote; None if it is not there or not whole."""
    try:
        facts = json.loads(_read(_facts_key(key)))
        octets = _read(key)
    except (FileNotFoundError, ValueError):
        return None
    if hashlib.sha256(octets).hexdigest() != facts["sha256"]:
        return None
    return ParsedDocument(
        markdown=octets.decode(),
        parser=facts["parser"],
        pages=_pages(facts["pages"]),
        doc_version=facts["doc_version"],
        effective_date=date.fromisoformat(facts["effective_date"]) if facts["effective_date"] else None,
        tags=tuple(facts["tags"]),
        warnings=tuple(facts["warnings"]),
    )


def load_markdown(key: str) -> str:
    """Raises FileNotFoundError."""
    return _read(key).decode()


def load_pages(key: str) -> tuple[PageStart, ...]:
    """Raises FileNotFoundError."""
    return _pages(json.loads(_read(_facts_key(key)))["pages"])


def load_original(key: str) -> bytes:
    """Raises FileNotFoundError."""
    return _read(key)


def remove(keys: Iterable[str]) -> None:
    """Deletes files; one that is not there is passed over, another failure is logged (the file is then an orphan)."""
    for key in filter(None, keys):
        try:
            default_storage.delete(key)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning("file_not_removed", key=key, reason=type(error).__name__)


def keys_of_markdown(key: str) -> tuple[str, ...]:
    """Both files of a revision; nothing for an empty key."""
    return (key, _facts_key(key)) if key else ()


def _facts_key(key: str) -> str:
    return f"{key}.json"


def _read(key: str) -> bytes:
    with default_storage.open(key, "rb") as file:
        content: bytes = file.read()
    return content


def _pages(rows: Iterable[tuple[int, int]]) -> tuple[PageStart, ...]:
    return tuple(PageStart(number=number, start=start) for number, start in rows)
