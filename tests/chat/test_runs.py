"""Many runs at once, stopped at any moment, and a database that fails at the end."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from apps.chat import runs, services
from apps.chat.bus import Frame
from apps.chat.models import Message
from apps.chat.pipeline.types import AskRequest
from apps.chat.runs import RunManager
from apps.chat.sse import encode
from apps.kb.access import resolve_scope
from apps.rbac.models import User
from tests.chat.support import ANSWER, QUESTION, PacedChatModel, ask_request, deps_of, parse_sse

pytestmark = pytest.mark.django_db(transaction=True)


async def begin(user: User) -> AskRequest:
    def write() -> services.Turn:
        return services.begin_turn(user, scope=resolve_scope(user), question=QUESTION, process_id="test:1")

    turn = await sync_to_async(write)()
    request = ask_request(message_id=turn.message_id, conversation_id=turn.conversation_id)
    return replace(request, run_id=turn.run_id)


async def frames_of(manager: RunManager, request: AskRequest) -> list[Frame]:
    listening = manager.bus.subscribe(request.run_id, after=0, idle_s=5)
    return [frame async for frame in listening if frame is not None]


async def test_runs_stopped_at_any_moment_leave_nothing_open_and_right_rows(user: User, manager: RunManager) -> None:
    chance = random.Random(7)
    requests = [await begin(user) for _ in range(25)]
    models = [PacedChatModel(ANSWER) for _ in requests]
    for request, model in zip(requests, models, strict=True):
        model.allow(chance.randint(0, 5))
        await manager.start(request, deps_of(model))
    listening = [asyncio.create_task(frames_of(manager, request)) for request in requests]
    for request in chance.sample(requests, len(requests)):
        for _ in range(chance.randint(0, 12)):
            await asyncio.sleep(0)
        await manager.stop(request.run_id)
        await manager.stop(request.run_id)
    all_frames = await asyncio.gather(*listening)
    assert manager.running == frozenset()
    for request, model, frames in zip(requests, models, all_frames, strict=True):
        assert model.closed.is_set() or not model.opened.is_set()
        assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
        events = parse_sse(b"".join(map(encode, frames)))
        row = await Message.objects.aget(pk=request.message_id)
        assert events[-1].name == "done"
        assert row.status == events[-1].data["outcome"]
        assert row.content == "".join(event.data["text"] for event in events if event.name == "token")
        assert row.sources == events[-1].data["sources"]
        assert row.agent_trace == events[-1].data["agentTrace"]


async def test_no_task_is_left_behind(user: User, manager: RunManager) -> None:
    before = asyncio.all_tasks()
    request = await begin(user)
    await manager.start(request, deps_of())
    await frames_of(manager, request)
    await manager.shutdown()
    assert asyncio.all_tasks() <= before


async def test_it_says_that_an_answer_could_not_be_saved(
    user: User, manager: RunManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OperationalError("gone away")

    monkeypatch.setattr(runs, "record_final", fail)
    request = await begin(user)
    await manager.start(request, deps_of())
    [*_, last] = parse_sse(b"".join(map(encode, await frames_of(manager, request))))
    assert last.name == "done"
    assert "could not be saved" in last.data["notice"]
    assert (await Message.objects.aget(pk=request.message_id)).status == "streaming"


async def test_whoever_listens_learns_of_a_run_that_broke(
    user: User, manager: RunManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("not foreseen")

    monkeypatch.setattr(runs, "record_final", fail)
    request = await begin(user)
    await manager.start(request, deps_of())
    [*_, last] = parse_sse(b"".join(map(encode, await frames_of(manager, request))))
    assert (last.name, last.data["code"]) == ("error", "internal_error")
    assert manager.running == frozenset()


async def test_a_database_that_fails_meanwhile_does_not_end_a_run(
    user: User, manager: RunManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail(*args: object) -> None:
        loop.call_soon_threadsafe(failed.set)
        raise OperationalError("gone away")

    monkeypatch.setattr(runs, "record_progress", fail)
    chat = PacedChatModel(ANSWER)
    request = await begin(user)
    await manager.start(request, deps_of(chat))
    await failed.wait()
    chat.allow(9)
    [*_, last] = await frames_of(manager, request)
    assert last.name == "done"
    assert (await Message.objects.aget(pk=request.message_id)).status == "done"


async def test_a_run_takes_nothing_of_its_request_along(user: User, manager: RunManager) -> None:
    import contextvars

    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="")
    seen: list[str] = []

    class Looking(PacedChatModel):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            seen.append(mark.get())
            async for delta in super().stream(request):
                yield delta

    mark.set("of the request")
    model = Looking(ANSWER)
    model.allow(9)
    request = await begin(user)
    await manager.start(request, deps_of(model))
    await frames_of(manager, request)
    assert seen == [""]
