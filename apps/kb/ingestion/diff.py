"""What of a document's new chunks is already there: matched by content_hash, in reading order.

A matched chunk keeps its row, its vector and its id; only where it stands may change.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from apps.kb.ingestion.types import ChunkedDocument
from apps.kb.models import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Positions are those in the ChunkedDocument; ids are rows."""

    kept_children: dict[int, int]
    kept_parents: dict[int, int]
    new_children: tuple[int, ...]
    new_parents: tuple[int, ...]
    removed_children: tuple[int, ...]
    removed_parents: tuple[int, ...]


def diff_chunks(document_id: int, chunked: ChunkedDocument) -> Diff:
    """Compares with the document's live rows."""
    live = Chunk.objects.filter(document_id=document_id, live=True).order_by("chunk_index", "pk")
    children, removed_children = _match(
        live.filter(vector_id__isnull=False).values_list("content_hash", "pk"),
        [child.content_hash for child in chunked.children],
    )
    parents, removed_parents = _match(
        live.filter(vector_id__isnull=True).values_list("content_hash", "pk"),
        [parent.content_hash for parent in chunked.parents],
    )
    return Diff(
        kept_children=children,
        kept_parents=parents,
        new_children=tuple(i for i in range(len(chunked.children)) if i not in children),
        new_parents=tuple(i for i in range(len(chunked.parents)) if i not in parents),
        removed_children=removed_children,
        removed_parents=removed_parents,
    )


def _match(rows: Iterable[tuple[str, int]], hashes: list[str]) -> tuple[dict[int, int], tuple[int, ...]]:
    """Row ids by position, and the ids left over. Equal texts are matched in order."""
    available: defaultdict[str, deque[int]] = defaultdict(deque)
    for content_hash, pk in rows:
        available[content_hash].append(pk)
    kept = {
        position: available[content_hash].popleft()
        for position, content_hash in enumerate(hashes)
        if available.get(content_hash)
    }
    return kept, tuple(pk for left in available.values() for pk in left)
