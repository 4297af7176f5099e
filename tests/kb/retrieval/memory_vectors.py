"""A vector store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.kb.models import Chunk
from docmind.vectors import VectorFilter, VectorHit


@dataclass
class MemoryVectors:
    """Exact search over vectors in memory, filtered as the server filters; it can be made to fail."""

    rows: dict[int, tuple[int, int, list[float]]] = field(default_factory=dict)
    failure: Exception | None = None
    calls: list[VectorFilter] = field(default_factory=list)

    def add(self, chunk: Chunk, vector: list[float]) -> None:
        self.rows[chunk.pk] = (chunk.knowledge_base_id, chunk.document_id, vector)

    async def search(
        self,
        name: str,
        vectors: Sequence[Sequence[float]],
        *,
        filter: VectorFilter,
        top_k: int,
        with_vectors: bool = False,
        timeout_s: float | None = None,
    ) -> list[list[VectorHit]]:
        self.calls.append(filter)
        if self.failure:
            raise self.failure
        return [self._nearest(vector, filter, top_k) for vector in vectors]

    def _nearest(self, query: Sequence[float], wanted: VectorFilter, top_k: int) -> list[VectorHit]:
        hits = [
            VectorHit(id=chunk_id, score=sum(a * b for a, b in zip(query, vector, strict=True)), vector=None)
            for chunk_id, (kb_id, document_id, vector) in self.rows.items()
            if kb_id in wanted.kb_ids and (wanted.document_ids is None or document_id in wanted.document_ids)
        ]
        return sorted(hits, key=lambda hit: -hit.score)[:top_k]
