"""Search on a real server: order, filters, missing collections, refusals."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from docmind.errors import PermanentError
from docmind.vectors import VectorFilter, VectorStore
from tests.vectors.rows import EAST, NORTH, NORTH_EAST, WEST, anything, row

HOSTILE_TAGS = [
    'say "hi"',
    "back\\slash",
    "\\",
    '\\"',
    '"] or id > 0 or lang in ["',
    "two\nlines",
    "cr\r",
    "tab\t",
    "it's",
]
HOSTILE_TAGS += ["标签", "𠮷", "{x}", "%s", "\\n", "\\u0041", ""]


async def ids(store: VectorStore, name: str, condition: VectorFilter, top_k: int = 100) -> set[int]:
    (hits,) = await store.search(name, [EAST], filter=condition, top_k=top_k)
    return {hit.id for hit in hits}


async def test_it_finds_the_nearest_first_with_cosine_scores(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(1, NORTH), row(2, NORTH_EAST), row(3, EAST), row(4, WEST)])
    east, north = await store.search(collection, [EAST, NORTH], filter=anything(), top_k=3)
    assert [hit.id for hit in east] == [3, 2, 1]
    assert [hit.score for hit in east] == pytest.approx([1.0, math.sqrt(0.5), 0.0], abs=1e-5)
    assert all(-1 <= hit.score <= 1 and hit.vector is None for hit in east + north)
    assert [hit.id for hit in north[:2]] == [1, 2]


async def test_it_returns_stored_vectors_on_request(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(1, (3.0, 4.0, 0.0, 0.5))])
    ((hit,),) = await store.search(collection, [EAST], filter=anything(), top_k=5, with_vectors=True)
    assert hit.vector == (3.0, 4.0, 0.0, 0.5)


async def test_it_lets_through_what_every_part_of_the_filter_allows(store: VectorStore, collection: str) -> None:
    store.upsert(
        collection,
        [
            row(1, kb_id=1, document_id=10, lang="zh", tags=("a", "b")),
            row(2, kb_id=1, document_id=11, lang="en", tags=("b",)),
            row(3, kb_id=2, document_id=12, lang="zh"),
            row(4, kb_id=3, document_id=13, lang="zh", tags=("a",)),
        ],
    )

    async def found(**parts: Any) -> set[int]:
        return await ids(store, collection, VectorFilter(**{"kb_ids": frozenset({1, 2}), **parts}))

    assert await found() == {1, 2, 3}
    assert await found(document_ids=frozenset({11, 12, 13})) == {2, 3}
    assert await found(langs=frozenset({"zh"})) == {1, 3}
    assert await found(tags=frozenset({"a", "b"})) == {1, 2}
    assert await found(tags=frozenset({"a", "c"}), langs=frozenset({"zh"})) == {1}
    assert await found(tags=frozenset({"c"})) == set()


async def test_it_finds_exactly_the_row_with_a_hostile_tag(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(number, tags=(tag,)) for number, tag in enumerate(HOSTILE_TAGS)])
    for number, tag in enumerate(HOSTILE_TAGS):
        condition = VectorFilter(kb_ids=frozenset({1}), tags=frozenset({tag}))
        assert await ids(store, collection, condition) == {number}, tag


async def test_it_sees_what_this_process_has_just_written(store: VectorStore, collection: str) -> None:
    for number in range(5):
        store.upsert(collection, [row(number)])
        assert await ids(store, collection, anything()) == {number}
        assert (await store.fetch_async(collection, [number])).keys() == {number}
        store.delete(collection, [number])
        assert store.count(collection) == 0
        assert await ids(store, collection, anything()) == set()


async def test_it_finds_nothing_without_a_collection(store: VectorStore) -> None:
    assert await store.search("test_absent", [EAST, NORTH], filter=anything(), top_k=5) == [[], []]
    assert await store.fetch_async("test_absent", [1]) == {}


async def test_it_asks_no_server_for_what_cannot_match() -> None:
    nowhere = VectorStore("http://127.0.0.1:1")
    nothing = VectorFilter(kb_ids=frozenset())
    assert await nowhere.search("test_absent", [EAST], filter=nothing, top_k=5) == [[]]
    assert await nowhere.search("test_absent", [], filter=anything(), top_k=5) == []


@pytest.mark.parametrize("vector", [[1.0, 0.0], [1.0] * 5, [math.nan, 0.0, 0.0, 0.0]])
async def test_it_refuses_a_query_that_does_not_fit(store: VectorStore, collection: str, vector: list[float]) -> None:
    with pytest.raises(PermanentError):
        await store.search(collection, [vector], filter=anything(), top_k=5)


def test_it_serves_one_event_loop_after_another(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(1)])
    for _loop in range(3):
        assert asyncio.run(ids(store, collection, anything())) == {1}


async def test_it_returns_as_many_hits_as_asked_for(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(number, (1.0, number / 100, 0.0, 0.0)) for number in range(700)])
    (hits,) = await store.search(collection, [EAST], filter=anything(), top_k=400)
    assert [hit.id for hit in hits] == list(range(400))
