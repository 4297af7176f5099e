"""A store on the running server, and a collection that each test finds empty."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from docmind.vectors import VectorStore


@pytest.fixture(scope="session")
def store(milvus_uri: str) -> Iterator[VectorStore]:
    store = VectorStore(milvus_uri)
    yield store
    store.close()


@pytest.fixture(scope="session")
def shared_collection(store: VectorStore) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    store.ensure_collection(name, 4)
    yield name
    store.drop_collection(name)


@pytest.fixture
def collection(store: VectorStore, shared_collection: str) -> Iterator[str]:
    """An empty collection of four dimensions, for rows with ids under 2,000 (making one takes a server 4 s)."""
    assert store.count(shared_collection) == 0
    yield shared_collection
    store.delete(shared_collection, range(2_000))
