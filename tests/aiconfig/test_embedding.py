"""The local embedder, with its real model, and the cache of query vectors."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence

import pytest

from apps.aiconfig.providers.local_embedding import LocalEmbedder
from apps.aiconfig.providers.query_cache import QueryCachingEmbedder
from apps.aiconfig.providers.types import EmbeddingKind
from tests.fakes import HashingEmbedder


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_it_gives_unit_vectors_in_order(local: LocalEmbedder) -> None:
    texts = [f"第 {number} 段" for number in range(6)]
    vectors = await local.embed(texts, "passage")
    assert [len(vector) for vector in vectors] == [local.dimension] * 6
    assert all(math.isclose(cosine(vector, vector), 1.0, abs_tol=1e-3) for vector in vectors)
    (alone,) = await local.embed([texts[4]], "passage")
    assert cosine(alone, vectors[4]) > 0.999


async def test_near_texts_are_near_across_languages(local: LocalEmbedder) -> None:
    (query,) = await local.embed(["怎么修改服务器端口？"], "query")
    port, cake = await local.embed(["To change the server port, set DOCMIND_PORT.", "Bake the cake."], "passage")
    assert cosine(query, port) > cosine(query, cake)


async def test_queries_and_passages_are_told_apart(local: LocalEmbedder) -> None:
    (query,) = await local.embed(["端口"], "query")
    (passage,) = await local.embed(["端口"], "passage")
    assert cosine(query, passage) < 0.999


async def test_nothing_gives_nothing(local: LocalEmbedder) -> None:
    assert await local.embed([], "passage") == []


@pytest.mark.parametrize("text", ["", " \n", "\0", "a\0b", "\ud800", "\ufdfa" * 3000, "字" * 100_000, "🙂" * 500])
async def test_awkward_texts_give_a_usable_vector(local: LocalEmbedder, text: str) -> None:
    (vector,) = await local.embed([text], "query")
    assert all(math.isfinite(value) for value in vector)
    assert math.isclose(cosine(vector, vector), 1.0, abs_tol=1e-3)


async def test_text_behind_a_nul_is_not_lost(local: LocalEmbedder) -> None:
    whole, cut = await local.embed(["port\0mysql", "port"], "query")
    assert cosine(whole, cut) < 0.999


async def test_the_loop_goes_on_meanwhile(local: LocalEmbedder) -> None:
    turns = 0
    work = asyncio.create_task(local.embed(["字" * 300] * 2, "passage"))
    while not work.done():
        turns += 1
        await asyncio.sleep(0.001)
    assert turns > 3


async def test_one_thread_works_at_a_time(local: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    encode = local._encode

    def watched(texts: list[str], kind: EmbeddingKind) -> list[list[float]]:
        names.add(threading.current_thread().name)
        return encode(texts, kind)

    monkeypatch.setattr(local, "_encode", watched)
    await asyncio.gather(*[local.embed([f"q{number}"], "query") for number in range(8)])
    assert len(names) == 1


async def test_a_query_is_embedded_once() -> None:
    inner = HashingEmbedder()
    cached = QueryCachingEmbedder(inner)
    first = await cached.embed(["a", "b", "a"], "query")
    assert first[0] == first[2]
    second = await cached.embed(["b", "c"], "query")
    assert inner.calls == [("a", "b"), ("c",)]
    assert second[0] == pytest.approx(first[1], abs=1e-6)


async def test_passages_are_not_kept() -> None:
    inner = HashingEmbedder()
    cached = QueryCachingEmbedder(inner)
    await cached.embed(["a"], "passage")
    await cached.embed(["a"], "passage")
    await cached.embed(["a"], "query")
    assert inner.calls == [("a",)] * 3


async def test_the_least_recently_used_query_goes_first() -> None:
    inner = HashingEmbedder()
    cached = QueryCachingEmbedder(inner, capacity=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text], "query")
    assert inner.calls == [("a",), ("b",), ("c",), ("b",)]


async def test_callers_cannot_change_what_is_kept() -> None:
    cached = QueryCachingEmbedder(HashingEmbedder())
    (first,) = await cached.embed(["a"], "query")
    kept = list(first)
    first[0] = 99.0
    (second,) = await cached.embed(["a"], "query")
    assert second == pytest.approx(kept, abs=1e-6)
