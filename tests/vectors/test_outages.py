"""What happens to a store when servers die, processes fork and threads crowd."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import pytest
from pymilvus import MilvusClient

from docmind.errors import TransientError
from docmind.vectors import VectorHit, VectorStore, reconnecting
from docmind.vectors import store as store_module
from tests.conftest import ON_SERVICES
from tests.servers import MilvusServer, milvus_lite, milvus_standalone
from tests.vectors.rows import EAST, anything, row


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    """A server of this module's own, to be killed at will."""
    make = milvus_standalone if ON_SERVICES else milvus_lite
    with make(tmp_path_factory.mktemp("outages")) as server:
        yield server


async def test_it_answers_again_after_the_server_was_killed(server: MilvusServer) -> None:
    store = VectorStore(server.uri)
    store.ensure_collection("survivors", 4)
    store.upsert("survivors", [row(number) for number in range(20)])

    server.kill()
    with pytest.raises(TransientError) as caught:
        await store.search("survivors", [EAST], filter=anything(), top_k=50)
    assert caught.value.code == "vector_store_unavailable"
    with pytest.raises(TransientError):
        store.upsert("survivors", [row(99)])
    with pytest.raises(TransientError):
        store.ping()

    server.start()
    hits = await _search_when_recovered(store, "survivors")
    assert {hit.id for hit in hits} == set(range(20))


async def _search_when_recovered(store: VectorStore, name: str) -> list[VectorHit]:
    """Milvus Lite answers soon; Milvus 2.3 calls itself healthy some 20 s before it serves what it had loaded."""
    deadline = time.monotonic() + (90 if ON_SERVICES else 10)
    while True:
        try:
            (hits,) = await store.search(name, [EAST], filter=anything(), top_k=50)
            return hits
        except TransientError:
            if time.monotonic() > deadline:
                raise


def test_it_loads_a_released_collection_for_every_kind_of_call(server: MilvusServer) -> None:
    store = VectorStore(server.uri)
    store.ensure_collection("forgotten", 4)
    store.upsert("forgotten", [row(number) for number in range(20)])
    reads: dict[str, Callable[[], bool]] = {
        "count": lambda: store.count("forgotten") == 20,
        "search": lambda: len(asyncio.run(store.search("forgotten", [EAST], filter=anything(), top_k=50))[0]) == 20,
        "iter_ids": lambda: len(store.iter_ids("forgotten", 1)) == 20,
        "fetch": lambda: store.fetch("forgotten", [3]) == {3: EAST},
    }
    for name, read in reads.items():
        _release(server, "forgotten")
        assert read(), name
    _release(server, "forgotten")
    store.delete_by_document("forgotten", 1)
    assert store.count("forgotten") == 0


def _release(server: MilvusServer, name: str) -> None:
    client = MilvusClient(uri=server.uri, dedicated=True)
    client.release_collection(name, timeout=10.0)
    client.close()


def test_it_retries_a_call_whose_connection_breaks(store: VectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("docmind.vectors.reconnecting.time.sleep", waits.append)
    nowhere = VectorStore("http://127.0.0.1:1", timeout_s=1.0)
    with pytest.raises(TransientError):
        nowhere.ping()
    assert waits == list(reconnecting.RETRY_WAITS_S)


async def test_it_gives_up_on_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ABANDON_AFTER_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        store = VectorStore(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout_s=0.5)
        with pytest.raises(TransientError) as caught:
            await store.search("test_absent", [EAST], filter=anything(), top_k=5, timeout_s=0.05)
    assert caught.value.code == "vector_store_unavailable"


def test_it_is_used_by_many_threads(store: VectorStore, collection: str) -> None:
    def write_and_read(number: int) -> int:
        store.upsert(collection, [row(number, document_id=number)])
        return len(store.fetch(collection, [number]))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write_and_read, range(64))) == 64
    assert store.count(collection) == 64


def _write_in_child(store: VectorStore, name: str, number: int, pipe: Pipe) -> None:
    store.upsert(name, [row(number)])
    pipe.send(store.count(name))


def test_it_is_used_by_parent_and_forked_children(store: VectorStore, collection: str) -> None:
    store.upsert(collection, [row(0)])
    fork = multiprocessing.get_context("fork")
    for number in (1, 2, 3):
        receiver, sender = fork.Pipe(duplex=False)
        child = fork.Process(target=_write_in_child, args=(store, collection, number, sender))
        child.start()
        try:
            assert receiver.poll(30), "the child is stuck"
            assert receiver.recv() == number + 1
            child.join(10)
            assert child.exitcode == 0
        finally:
            child.kill()
        assert store.count(collection) == number + 1


def test_it_does_not_load_the_sdk_before_a_server_is_needed() -> None:
    program = (
        "import sys, docmind.vectors; docmind.vectors.VectorStore('http://x'); sys.exit('pymilvus' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=root).returncode == 0
