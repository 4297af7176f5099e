"""Front matter of Markdown: `key: value` lines and flat lists between two lines of `---`.

Only the few keys that mean something here are used, so a small reader serves better than YAML with its aliases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

MAX_LINES = 200
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_COMMENT = re.compile(r"(?:^|\s)#.*$")

_VERSION_KEYS = ("doc_version", "version")
_DATE_KEYS = ("effective_date", "date", "last_updated", "updated")
_TAG_KEYS = ("tags", "keywords", "categories", "category", "tag")
MAX_VERSION_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """`body_start`: the character at which the document itself begins; 0 if there is no front matter."""

    body_start: int = 0
    title: str = ""
    doc_version: str = ""
    effective_date: date | None = None
    tags: tuple[str, ...] = ()


def read_front_matter(text: str) -> FrontMatter:
    """What stands before the document; a block that is not closed, or holds something else, is part of the document."""
    if not text.startswith("---\n"):
        return FrontMatter()
    values: dict[str, list[str]] = {}
    position, key = 4, ""
    for _number in range(MAX_LINES):
        end = text.find("\n", position)
        line = text[position : len(text) if end < 0 else end].rstrip()
        position = len(text) if end < 0 else end + 1
        if line in {"---", "..."}:
            return _from_values(values, position) if values else FrontMatter()
        if end < 0:
            break
        if match := _KEY.match(line):
            key = match[1].lower().replace("-", "_")
            values[key] = _values(match[2] or "")
        elif (item := _ITEM.match(line)) and key:
            values[key] += _values(item[1])
        elif line.strip() and not line.startswith((" ", "\t", "#")):
            break
    return FrontMatter()


def _from_values(values: dict[str, list[str]], body_start: int) -> FrontMatter:
    def first(*keys: str) -> str:
        return next((values[key][0] for key in keys if values.get(key)), "")

    tags = [tag.strip() for key in _TAG_KEYS for value in values.get(key, []) for tag in re.split(r"[,，、]", value)]
    return FrontMatter(
        body_start=body_start,
        title=first("title"),
        doc_version=first(*_VERSION_KEYS)[:MAX_VERSION_CHARS],
        effective_date=_date(first(*_DATE_KEYS)),
        tags=tuple(dict.fromkeys(filter(None, tags))),
    )


def _values(raw: str) -> list[str]:
    raw = raw.strip()
    if raw.startswith("["):
        inner = _COMMENT.sub("", raw).strip().strip("[]")
        return [value for value in map(_scalar, inner.split(",")) if value]
    value = _scalar(raw)
    return [value] if value else []


def _scalar(raw: str) -> str:
    raw = raw.strip()
    if len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "\"'":
        return raw[1:-1].strip()
    return _COMMENT.sub("", raw).strip().strip("|>").strip()


def _date(raw: str) -> date | None:
    match = _DATE.match(raw)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
