"""Remembers the vectors of the last queries: the same question is searched several times in one run."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from apps.aiconfig.providers.types import Embedder, EmbeddingKind

CAPACITY: Final = 2048
"""Vectors kept; 3 MB at 384 dimensions."""


class QueryCachingEmbedder:
    """The given embedder; the vectors of queries are kept, the least recently used one goes first."""

    def __init__(self, embedder: Embedder, *, capacity: int = CAPACITY) -> None:
        self._embedder = embedder
        self._capacity = capacity
        self._vectors: OrderedDict[tuple[str, str], array[float]] = OrderedDict()
        self._lock = threading.Lock()
        self.fingerprint = embedder.fingerprint
        self.dimension = embedder.dimension

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        if kind == "passage":
            return await self._embedder.embed(texts, kind)
        found = {text: vector for text in texts if (vector := self._recall(text)) is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        if missing:
            for text, vector in zip(missing, await self._embedder.embed(missing, kind), strict=True):
                found[text] = vector
                self._keep(text, vector)
        return [list(found[text]) for text in texts]

    def _recall(self, text: str) -> list[float] | None:
        key = (self.fingerprint, text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is None:
                return None
            self._vectors.move_to_end(key)
            return list(vector)

    def _keep(self, text: str, vector: Sequence[float]) -> None:
        with self._lock:
            self._vectors[self.fingerprint, text] = array("f", vector)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
