"""The whole of retrieval: modes, scope, what happens when a part is down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.aiconfig.providers.types import EmbeddingKind
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.access import resolve_scope
from apps.kb.models import AccessGrant, Chunk, Document, KnowledgeBase
from apps.kb.retrieval.search import search
from apps.kb.retrieval.types import RetrievalResult, SearchMode, SearchRequest
from apps.rbac.models import User
from docmind.errors import TransientError
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.fakes import HashingEmbedder
from tests.kb.retrieval.corpus import add_chunk, add_document, add_parent, scope_of
from tests.kb.retrieval.memory_vectors import MemoryVectors

pytestmark = pytest.mark.django_db(transaction=True)

MODES: tuple[SearchMode, ...] = ("hybrid", "vector", "keyword")
EMBEDDER = HashingEmbedder()


class World:
    """Chunks that are indexed both ways."""

    def __init__(self) -> None:
        self.vectors = MemoryVectors()

    def add(self, document: Document, content: str, **options: Any) -> Chunk:
        chunk = add_chunk(document, content, **options)
        [vector] = asyncio.run(EMBEDDER.embed([content], "passage"))
        self.vectors.add(chunk, vector)
        return chunk

    def search(
        self,
        query: str,
        *kbs: KnowledgeBase,
        embedder: Any = EMBEDDER,
        config: ConfigSnapshot | None = None,
        **options: Any,
    ) -> RetrievalResult:
        request = SearchRequest(query=query, **{"scope": scope_of(*kbs), **options})
        return async_to_sync(search)(
            request, config=config or ConfigSnapshot(), embedder=embedder, vectors=self.vectors
        )


@pytest.fixture
def world() -> World:
    return World()


def found(result: RetrievalResult) -> list[int | None]:
    return [chunk.chunk_id for chunk in result.chunks]


@pytest.mark.parametrize("mode", MODES)
def test_it_finds_the_passage_in_every_mode(world: World, mode: SearchMode) -> None:
    document = add_document(KnowledgeBaseFactory())
    world.add(document, "数据库拆分之前先停止写入。")
    answer = world.add(document, "服务默认监听端口 8080。", heading_path="服务 > 网络")
    result = world.search("默认监听端口", document.knowledge_base, mode=mode)
    best = result.chunks[0]
    assert (best.chunk_id, best.document_name, best.heading_path) == (answer.pk, "manual.md", "服务 > 网络")
    assert best.rerank_score == result.top_score > 0.9
    assert result.degraded == ()
    stages = {timing.stage for timing in result.timings}
    assert stages >= {"query", "fusion", "load", "rerank", "parents", "compress"}
    assert ("vector" in stages, "keyword" in stages) == (mode != "keyword", mode != "vector")


def test_it_shows_the_parent_of_a_hit_and_cites_the_child(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    text = "先停止写入。服务默认监听端口 8080。最后重启。"
    parent = add_parent(document, text, start=10)
    child = world.add(document, text[6:21], parent=parent, start=16)
    [best] = world.search("监听端口", document.knowledge_base).chunks
    assert (best.content, best.start_char, best.end_char) == (text, 10, 10 + len(text))
    assert (best.chunk_id, best.child_content, best.child_start) == (child.pk, text[6:21], 16)


def test_it_never_returns_what_is_not_live(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    world.add(document, "监听端口", live=False)
    live = world.add(document, "监听端口 8080")
    for mode in MODES:
        assert found(world.search("监听端口", document.knowledge_base, mode=mode)) == [live.pk]


def test_it_passes_over_vectors_without_a_row(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    gone = world.add(document, "监听端口")
    gone.delete()
    assert found(world.search("监听端口", document.knowledge_base, mode="vector")) == []


def three_users() -> dict[User, set[int]]:
    """An owner, somebody with a grant and an outsider, with the documents each may read; every text is the same."""
    owner, teammate, outsider = (UserFactory() for _ in range(3))
    public = KnowledgeBaseFactory(owner=owner, visibility=KnowledgeBase.Visibility.PUBLIC)
    restricted = KnowledgeBaseFactory(owner=owner, visibility=KnowledgeBase.Visibility.RESTRICTED)
    private = KnowledgeBaseFactory(owner=owner, visibility=KnowledgeBase.Visibility.PRIVATE)
    AccessGrant.objects.create(knowledge_base=restricted, user=teammate, level=AccessGrant.Level.READ)
    documents = [add_document(kb).pk for kb in (public, restricted, private)]
    return {owner: set(documents), teammate: set(documents[:2]), outsider: set(documents[:1])}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("narrowed", [False, True])
def test_it_stays_in_the_scope_of_each_user(world: World, mode: SearchMode, narrowed: bool) -> None:
    readable = three_users()
    everything = set().union(*readable.values())
    for document in Document.objects.filter(pk__in=everything):
        for number in range(3):
            text = sha256(f"{document.pk}-{number}".encode()).hexdigest()
            world.add(document, f"监听端口 E1205 {text}")
    for user, documents in readable.items():
        scope = resolve_scope(user)
        options: dict[str, Any] = {"document_ids": frozenset(everything)} if narrowed else {}
        result = world.search("监听端口 E1205", scope=scope, mode=mode, top_k=20, fit_prompt=False, **options)
        assert {chunk.document_id for chunk in result.chunks} == documents
        assert {chunk.knowledge_base_id for chunk in result.chunks} <= scope.readable_kb_ids
    assert all(call.kb_ids for call in world.vectors.calls)


def test_it_drops_what_a_vector_store_returns_against_the_filter(world: World) -> None:
    mine, hidden = add_document(KnowledgeBaseFactory()), add_document(KnowledgeBaseFactory())
    leaked = world.add(hidden, "监听端口")
    kb_id, document_id, vector = mine.knowledge_base_id, mine.pk, world.vectors.rows[leaked.pk][2]
    world.vectors.rows[leaked.pk] = (kb_id, document_id, vector)
    assert found(world.search("监听端口", mine.knowledge_base)) == []


def test_it_does_nothing_for_an_empty_scope(world: World) -> None:
    world.add(add_document(KnowledgeBaseFactory()), "监听端口")
    result = world.search("监听端口")
    assert (result.chunks, result.timings, world.vectors.calls) == ((), (), [])


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_it_answers_by_keyword_when_the_vector_store_is_down(world: World, mode: SearchMode) -> None:
    document = add_document(KnowledgeBaseFactory())
    chunk = world.add(document, "监听端口")
    world.vectors.failure = TransientError("The vector store does not answer.", code="vector_store_unavailable")
    result = world.search("监听端口", document.knowledge_base, mode=mode)
    assert found(result) == [chunk.pk]
    assert [(part.part, part.reason) for part in result.degraded] == [("vector", "The vector store does not answer.")]


def test_it_answers_by_keyword_without_an_embedder(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    chunk = world.add(document, "监听端口")
    result = world.search("监听端口", document.knowledge_base, embedder=None)
    assert found(result) == [chunk.pk]
    assert [part.part for part in result.degraded] == ["embedding"]


class SleepingEmbedder(HashingEmbedder):
    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        await asyncio.Event().wait()
        raise AssertionError


def test_it_leaves_a_late_search_out(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    chunk = world.add(document, "监听端口")
    config = ConfigSnapshot(retrieval_worker_timeout_s=0.1)
    result = world.search("监听端口", document.knowledge_base, embedder=SleepingEmbedder(), config=config)
    # The keyword search has the same limit, and may be late too on a machine that is busy.
    assert "vector" in [part.part for part in result.degraded]
    assert found(result) == [chunk.pk] or "keyword" in [part.part for part in result.degraded]


def test_it_brings_the_holder_of_an_identifier_to_the_top(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    for number in range(60):
        world.add(document, f"连接池的上限怎么设置，参数说明 {number}：连接池的上限由参数设置。")
    exact = world.add(document, "spring.datasource.hikari.maxPoolSize=20")
    result = world.search("连接池的上限怎么设置 maxPoolSize", document.knowledge_base)
    assert result.candidates == 30
    assert found(result)[0] == exact.pk


def test_it_returns_as_many_as_asked(world: World) -> None:
    document = add_document(KnowledgeBaseFactory())
    for number in range(40):
        world.add(document, f"监听端口，说法各不相同：{number * 7919} {'甲乙丙丁戊己庚辛'[number % 8] * 9}")
    kb = document.knowledge_base
    assert len(world.search("监听端口", kb).chunks) == 8
    assert len(world.search("监听端口", kb, top_k=3).chunks) == 3
    assert len(world.search("监听端口", kb, top_k=35, fit_prompt=False).chunks) == 35


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=100))
def test_it_takes_any_query(world: World, query: str) -> None:
    kb = KnowledgeBase.objects.first() or KnowledgeBaseFactory()
    if not kb.documents.exists():
        world.add(add_document(kb), "监听端口 8080")
    for mode in MODES:
        assert len(world.search(query, kb, mode=mode).chunks) <= 1


@pytest.mark.parametrize("query", ["", "  ", "？！", "的", "🙂", "端口" * 2500, "id in [1] or true", "%s"])
def test_it_takes_odd_queries(world: World, query: str) -> None:
    document = add_document(KnowledgeBaseFactory())
    world.add(document, "监听端口 8080")
    for mode in MODES:
        assert world.search(query, document.knowledge_base, mode=mode).degraded == ()
