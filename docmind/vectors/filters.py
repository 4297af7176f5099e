"""Milvus filter expressions, made of nothing but integers and quoted strings.

The server has no placeholders that both Milvus Lite and Milvus 2.3 understand, so values are written into the
expression. Integers are written by Python; in strings the four characters that could end or bend a literal are escaped
(backslash, double quote, line feed, carriage return), all others stand for themselves on every server.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

from django.utils.translation import gettext as _

from docmind.errors import PermanentError
from docmind.vectors.types import VectorFilter

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def expression(condition: VectorFilter) -> str:
    """The filter as a Milvus expression; the same filter always gives the same text.

    Raises PermanentError for text that is not valid Unicode and TypeError for ids that are not integers.
    """
    parts = [one_of("kb_id", condition.kb_ids)]
    if condition.document_ids is not None:
        parts.append(one_of("document_id", condition.document_ids))
    if condition.langs is not None:
        parts.append(f"lang in {_quoted_list(condition.langs)}")
    if condition.tags is not None:
        parts.append(f"array_contains_any(tags, {_quoted_list(condition.tags)})")
    return " and ".join(parts)


def one_of(field: str, ids: Iterable[int]) -> str:
    """`field in [1, 2]`, for a field's name that the caller's code spells out."""
    return f"{field} in [{', '.join(str(index(value)) for value in sorted(ids))}]"


def _quoted_list(values: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in sorted(values))}]"


def _quoted(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PermanentError(_("The filter holds text that is not valid Unicode."), code="invalid_filter") from None
    return f'"{value.translate(_ESCAPES)}"'
