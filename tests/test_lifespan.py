"""The web server's beginning and end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from docmind import lifespan


class Server:
    """The other side of the protocol."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.sent: list[str] = []
        self.has_started = asyncio.Event()

    async def send(self, message: Mapping[str, Any]) -> None:
        self.sent.append(message["type"])
        self.has_started.set()


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was closed, in order; nothing real is warmed up or closed."""
    order: list[str] = []

    async def close(name: str) -> None:
        order.append(name)

    monkeypatch.setattr(lifespan, "shutdown_runs", lambda: close("runs"))
    monkeypatch.setattr(lifespan, "close_providers", lambda: close("providers"))
    return order


async def test_it_is_up_before_the_warm_up_ends_and_cancels_it_at_the_end(
    closed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, outcome = Server(), []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    monkeypatch.setattr(lifespan, "_warm_up", endless)
    living = asyncio.create_task(lifespan.live(server.incoming.get, server.send))
    server.incoming.put_nowait({"type": "lifespan.startup"})
    await server.has_started.wait()
    assert server.sent == ["lifespan.startup.complete"]
    await asyncio.sleep(0)  # the warm-up begins
    server.incoming.put_nowait({"type": "lifespan.shutdown"})
    await living
    assert server.sent[-1] == "lifespan.shutdown.complete"
    assert closed == ["runs", "providers"]
    assert outcome == ["cancelled"]


async def test_it_tells_the_server_when_the_end_fails(closed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    async def nothing() -> None:
        return None

    async def fail() -> None:
        raise RuntimeError("no end")

    monkeypatch.setattr(lifespan, "_warm_up", nothing)
    monkeypatch.setattr(lifespan, "shutdown_runs", fail)
    server.incoming.put_nowait({"type": "lifespan.startup"})
    server.incoming.put_nowait({"type": "lifespan.shutdown"})
    await lifespan.live(server.incoming.get, server.send)
    assert server.sent == ["lifespan.startup.complete", "lifespan.shutdown.failed"]


async def test_it_warms_up_the_rest_when_one_part_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[str] = []

    async def run_db(_func: object) -> None:
        raise ConnectionError("no database")

    async def run_blocking(func: Any) -> None:
        warmed.append(getattr(func, "__name__", "?"))

    async def embed() -> None:
        warmed.append("embed")

    monkeypatch.setattr(lifespan, "run_db", run_db)
    monkeypatch.setattr(lifespan, "run_blocking", run_blocking)
    monkeypatch.setattr(lifespan, "_embed_a_word", embed)
    await lifespan._warm_up()
    assert "current_providers" in warmed
    assert "embed" in warmed
    assert len(warmed) == 4
