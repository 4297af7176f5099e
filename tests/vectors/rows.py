"""Rows for the vector tests."""

from __future__ import annotations

from typing import Any

from docmind.vectors import VectorFilter, VectorRow

EAST = (1.0, 0.0, 0.0, 0.0)
NORTH = (0.0, 1.0, 0.0, 0.0)
NORTH_EAST = (1.0, 1.0, 0.0, 0.0)
WEST = (-1.0, 0.0, 0.0, 0.0)


def row(id: int, vector: Any = EAST, **fields: Any) -> VectorRow:
    values: dict[str, Any] = {
        "kb_id": 1,
        "document_id": 1,
        "lang": "en",
        "content_type": "general",
        "tags": (),
        **fields,
    }
    return VectorRow(id=id, vector=vector, **values)


def anything(*kb_ids: int) -> VectorFilter:
    return VectorFilter(kb_ids=frozenset(kb_ids or (1,)))
