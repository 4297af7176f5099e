"""A run in one web process, its reader in another, over Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from django.test import AsyncClient

from apps.chat import runs
from apps.chat.models import Message
from apps.chat.runs import RunManager
from apps.rbac.models import User
from tests.chat.conftest import Wiring, make_bus
from tests.chat.support import ANSWER, QUESTION, PacedChatModel, parse_sse, read_all, read_until

pytestmark = pytest.mark.django_db(transaction=True)


class Processes:
    """Two run managers, each with its own connection to Redis; `enter` says in which one requests arrive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.managers = [RunManager(make_bus("redis"), watch_s=0.01, flush_s=0.05) for _ in range(2)]

    def enter(self, number: int) -> None:
        self._monkeypatch.setattr(runs._Held, "manager", self.managers[number])


@pytest_asyncio.fixture
async def processes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Processes]:
    made = Processes(monkeypatch)
    yield made
    for manager in made.managers:
        await manager.shutdown()


@pytest_asyncio.fixture
async def client(user: User) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(user)
    return client


async def ask(client: AsyncClient) -> Any:
    return await client.post("/api/chat/ask/", {"question": QUESTION}, content_type="application/json")


async def test_it_resumes_in_another_process(client: AsyncClient, wiring: Wiring, processes: Processes) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    processes.enter(0)
    response = await ask(client)
    chat.allow(1)
    stream = aiter(response)
    first = parse_sse(await read_until(stream, "token"))
    await stream.aclose()
    processes.enter(1)
    url = f"/api/chat/runs/{response['X-Run-Id']}/events/"
    resumed = await client.get(url, headers={"Last-Event-ID": str(first[-1].id)})
    reading = asyncio.create_task(read_all(resumed))
    chat.allow(9)
    rest = parse_sse(await reading)
    assert [event.id for event in (*first, *rest)] == list(range(1, 11))
    assert rest[-1].data["outcome"] == "done"


async def test_it_stops_from_another_process(client: AsyncClient, wiring: Wiring, processes: Processes) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    processes.enter(0)
    response = await ask(client)
    chat.allow(1)
    stream = aiter(response)
    await read_until(stream, "token")
    processes.enter(1)
    assert (await client.post(f"/api/chat/runs/{response['X-Run-Id']}/stop/")).status_code == 202
    assert parse_sse(b"".join([part async for part in stream]))[-1].data["outcome"] == "stopped"
    assert chat.closed.is_set()
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.content) == ("stopped", ANSWER[0])


async def test_a_listener_in_another_process_keeps_a_run_alive(
    client: AsyncClient, wiring: Wiring, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.aiconfig.snapshot import ConfigSnapshot
    from apps.chat.api import stream_views

    monkeypatch.setattr(stream_views, "current_config", lambda: ConfigSnapshot(sse_disconnect_grace_s=0.03))
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    processes.enter(0)
    response = await ask(client)
    processes.enter(1)
    resumed = await client.get(f"/api/chat/runs/{response['X-Run-Id']}/events/")
    reading = asyncio.create_task(read_all(resumed))
    for _ in range(5):
        await asyncio.sleep(0.03)
        chat.allow(1)
    assert parse_sse(await reading)[-1].data["outcome"] == "done"
