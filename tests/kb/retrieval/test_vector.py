"""Vector search against a real server."""

from __future__ import annotations

from uuid import uuid4

import pytest

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import Candidate
from apps.kb.retrieval.vector import COLLECTION_KIND, search_vectors
from docmind.errors import TransientError
from docmind.vectors import VectorRow, VectorStore, collection_name
from tests.fakes import HashingEmbedder

TEXTS = {11: (1, "监听端口 8080"), 12: (1, "数据库拆分"), 21: (2, "监听端口 8080"), 31: (3, "监听端口 8080")}


class OwnEmbedder(HashingEmbedder):
    """With a collection of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.fingerprint = f"test-{uuid4().hex[:12]}"


async def find(
    embedder: HashingEmbedder, store: VectorStore, kb_ids: set[int], document_ids: set[int] | None = None
) -> tuple[Candidate, ...]:
    return await search_vectors(
        "监听端口 8080",
        kb_ids=kb_ids,
        document_ids=document_ids,
        embedder=embedder,
        vectors=store,
        config=ConfigSnapshot(),
    )


async def test_it_searches_the_embedders_collection_within_the_scope(milvus_uri: str) -> None:
    store, embedder = VectorStore(milvus_uri), OwnEmbedder()
    assert await find(embedder, store, {1}) == ()
    name = collection_name(COLLECTION_KIND, embedder.fingerprint)
    store.ensure_collection(name, embedder.dimension)
    vectors = await embedder.embed([text for _, text in TEXTS.values()], "passage")
    store.upsert(
        name,
        [
            VectorRow(
                id=chunk_id, kb_id=kb_id, document_id=kb_id, lang="zh", content_type="general", tags=(), vector=vector
            )
            for (chunk_id, (kb_id, _)), vector in zip(TEXTS.items(), vectors, strict=True)
        ],
    )
    found = await find(embedder, store, {1, 2})
    assert [candidate.chunk_id for candidate in found] == [11, 21, 12]
    assert found[0].score == pytest.approx(1.0, abs=1e-4)
    assert [candidate.chunk_id for candidate in await find(embedder, store, {1, 2}, {2, 3})] == [21]
    assert await find(embedder, store, set()) == ()
    store.drop_collection(name)


async def test_it_says_when_the_server_is_gone() -> None:
    with pytest.raises(TransientError):
        await find(OwnEmbedder(), VectorStore("http://127.0.0.1:9", timeout_s=0.5), {1})
