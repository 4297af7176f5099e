"""Vector search: the query's embedding against the chunks of the embedder's own collection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from apps.aiconfig.providers.types import Embedder
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import Candidate
from docmind.vectors import VectorFilter, VectorHit, collection_name

COLLECTION_KIND = "chunks"


class VectorSearcher(Protocol):
    """What is needed of `docmind.vectors.VectorStore`."""

    async def search(
        self,
        name: str,
        vectors: Sequence[Sequence[float]],
        *,
        filter: VectorFilter,
        top_k: int,
        with_vectors: bool = False,
        timeout_s: float | None = None,
    ) -> list[list[VectorHit]]: ...


async def search_vectors(
    query: str,
    *,
    kb_ids: Collection[int],
    document_ids: Collection[int] | None,
    embedder: Embedder,
    vectors: VectorSearcher,
    config: ConfigSnapshot,
) -> tuple[Candidate, ...]:
    """The nearest chunks in scope with their cosines, best first, ties by id. A chunk's vector has the chunk's id.

    Raises TransientError or PermanentError when the embedder or the store does.
    """
    [embedding] = await embedder.embed([query], "query")
    [hits] = await vectors.search(
        collection_name(COLLECTION_KIND, embedder.fingerprint),
        [embedding],
        filter=VectorFilter(
            kb_ids=frozenset(kb_ids), document_ids=None if document_ids is None else frozenset(document_ids)
        ),
        top_k=config.retrieval_vector_top_k,
        timeout_s=config.retrieval_worker_timeout_s,
    )
    candidates = (Candidate(chunk_id=hit.id, score=hit.score) for hit in hits)
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk_id)))
