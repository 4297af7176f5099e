"""The encoded terms of many chunks, read from the search table a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from apps.kb import fulltext

BATCH_ROWS = 500


def terms_of(chunk_ids: Iterable[int]) -> Iterator[list[str]]:
    """One list of terms, with repeats, a chunk that has a search row."""
    ids = iter(chunk_ids)
    while batch := list(islice(ids, BATCH_ROWS)):
        for text in fulltext.read_rows(batch).values():
            yield text.split()
