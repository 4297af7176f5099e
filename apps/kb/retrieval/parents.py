"""Parent expansion: a hit child gives way to the wider passage around it, so that the model sees what it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from apps.kb.retrieval.types import ParentPassage, RetrievedChunk


def expand_parents(
    chunks: Sequence[RetrievedChunk], parents: Mapping[int, ParentPassage]
) -> tuple[RetrievedChunk, ...]:
    """The chunks, best first, with their parents' text and offsets; `child_…` stays that of the hit.

    Of several children of one parent the best one stands for all. A chunk without a parent stays as it is, and so does
    one whose parent is not among `parents` or does not span it.
    """
    expanded: list[RetrievedChunk] = []
    seen: set[int] = set()
    for chunk in chunks:
        parent = parents.get(chunk.parent_chunk_id) if chunk.parent_chunk_id is not None else None
        if chunk.parent_chunk_id is None or parent is None or not _spans(parent, chunk):
            expanded.append(chunk)
        elif chunk.parent_chunk_id not in seen:
            seen.add(chunk.parent_chunk_id)
            expanded.append(
                replace(chunk, content=parent.content, start_char=parent.start_char, end_char=parent.end_char)
            )
    return tuple(expanded)


def _spans(parent: ParentPassage, chunk: RetrievedChunk) -> bool:
    return parent.start_char <= chunk.child_start and chunk.child_end <= parent.end_char
