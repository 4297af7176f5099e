"""Checks that no server does alike: Milvus Lite stores NaN and over-long text that others refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from docmind.vectors.errors import VectorStoreRejectedError
from docmind.vectors.types import (
    CONTENT_TYPE_LIMIT_BYTES,
    LANG_LIMIT_BYTES,
    TAG_LIMIT,
    TAG_LIMIT_BYTES,
    VectorRow,
)


def check_dimension(*, stored: int, given: int) -> None:
    """Raise PermanentError where a vector of `given` numbers cannot go into a collection of `stored`."""
    if stored != given:
        message = _("The collection holds vectors of %(stored)d numbers, not %(given)d.")
        raise VectorStoreRejectedError(message % {"stored": stored, "given": given}, code="vector_dimension_mismatch")


def check_vector(vector: Sequence[float], dimension: int) -> None:
    """Raise PermanentError for a vector of another length or with numbers that are not finite."""
    check_dimension(stored=dimension, given=len(vector))
    if not all(map(math.isfinite, vector)):
        raise VectorStoreRejectedError(_("The vector holds numbers that are not finite."), code="invalid_vector")


def record(row: VectorRow, dimension: int) -> dict[str, Any]:
    """The row as the SDK takes it. Raises PermanentError for what a server would refuse or cut."""
    check_vector(row.vector, dimension)
    limits = [(row.lang, LANG_LIMIT_BYTES), (row.content_type, CONTENT_TYPE_LIMIT_BYTES)]
    limits += [(tag, TAG_LIMIT_BYTES) for tag in row.tags]
    if len(row.tags) > TAG_LIMIT or any(_size_bytes(text) > limit for text, limit in limits):
        raise VectorStoreRejectedError(
            _("A tag, language or kind is too long, or there are too many."), code="invalid_row"
        )
    return {
        "id": row.id,
        "kb_id": row.kb_id,
        "document_id": row.document_id,
        "lang": row.lang,
        "content_type": row.content_type,
        "tags": list(row.tags),
        "vector": list(row.vector),
    }


def _size_bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise VectorStoreRejectedError(_("The text is not valid Unicode."), code="invalid_row") from None
