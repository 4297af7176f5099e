"""What every bus does. The far side is another process's view of the same runs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from apps.chat.bus import FINISHED_TTL_S, Frame, InProcessBus, RunBus, RunLostError, Signals
from tests.chat.conftest import make_bus, redis_url

needs_redis = pytest.mark.skipif(not redis_url(), reason="needs REDIS_URL or DOCMIND_TEST_SERVICES=1")


@pytest_asyncio.fixture(params=["in-process", pytest.param("redis", marks=needs_redis)])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[RunBus]:
    made = make_bus(request.param)
    yield made
    await made.close()


@pytest_asyncio.fixture(params=["in-process", pytest.param("redis", marks=needs_redis)])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[RunBus, RunBus]]:
    """The bus of the run's process and that of a listener's; in one process they are the same."""
    near = make_bus(request.param)
    far = near if request.param == "in-process" else make_bus(request.param)
    yield near, far
    await far.close()
    await near.close()


def frame(seq: int, *, final: bool = False) -> Frame:
    return Frame(seq=seq, name="done" if final else "token", data=f'{{"text":"第{seq}"}}', final=final)


async def publish(bus: RunBus, run_id: uuid.UUID, *frames: Frame) -> None:
    for item in frames:
        await bus.publish(run_id, item)


async def collect(bus: RunBus, run_id: uuid.UUID, *, after: int = 0) -> list[Frame]:
    async with aclosing(bus.subscribe(run_id, after=after, idle_s=5)) as frames:
        return [item async for item in frames if item is not None]


async def test_it_gives_all_frames_in_order_to_one_who_comes_late(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id = uuid.uuid4()
    await near.open(run_id)
    frames = [*map(frame, range(1, 40)), frame(40, final=True)]
    await publish(near, run_id, *frames)
    assert await collect(far, run_id) == frames


async def test_it_gives_exactly_the_rest(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id = uuid.uuid4()
    await near.open(run_id)
    await publish(near, run_id, frame(1), frame(2), frame(3), frame(4, final=True))
    assert [item.seq for item in await collect(far, run_id, after=2)] == [3, 4]
    assert await collect(far, run_id, after=4) == []
    assert await collect(far, run_id, after=99) == []


async def test_it_passes_frames_on_while_they_come(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id = uuid.uuid4()
    await near.open(run_id)
    listening = [asyncio.create_task(collect(far, run_id)) for _ in range(3)]
    for number in range(1, 6):
        await publish(near, run_id, frame(number))
        await asyncio.sleep(0.005)
    await publish(near, run_id, frame(6, final=True))
    for received in await asyncio.gather(*listening):
        assert [item.seq for item in received] == [1, 2, 3, 4, 5, 6]


async def test_it_can_be_listened_to_before_the_first_frame(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id = uuid.uuid4()
    await near.open(run_id)
    assert await far.knows(run_id)
    async with aclosing(far.subscribe(run_id, after=0, idle_s=0.02)) as frames:
        assert await anext(frames) is None
        await publish(near, run_id, frame(1, final=True))
        received = [item async for item in frames if item is not None]
    assert received == [frame(1, final=True)]


async def test_it_keeps_runs_apart(bus: RunBus) -> None:
    one, two = uuid.uuid4(), uuid.uuid4()
    await bus.open(one)
    await bus.open(two)
    await publish(bus, one, frame(1, final=True))
    await publish(bus, two, frame(1), frame(2, final=True))
    assert len(await collect(bus, one)) == 1
    assert len(await collect(bus, two)) == 2


async def test_it_carries_a_stop_to_the_runs_process(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id, other = uuid.uuid4(), uuid.uuid4()
    await near.open(run_id)
    await near.open(other)
    assert not (await near.signals([run_id]))[run_id].stop
    await far.request_stop(run_id)
    signals = await near.signals([run_id, other])
    assert signals[run_id].stop
    assert not signals[other].stop


async def test_it_counts_who_listens(pair: tuple[RunBus, RunBus]) -> None:
    near, far = pair
    run_id = uuid.uuid4()
    await near.open(run_id)
    assert await near.signals([run_id]) == {run_id: Signals(stop=False, listeners=0)}
    async with aclosing(far.subscribe(run_id, after=0, idle_s=0.02)) as frames:
        await anext(frames)
        async with aclosing(near.subscribe(run_id, after=0, idle_s=0.02)) as more:
            await anext(more)
            assert (await near.signals([run_id]))[run_id].listeners == 2
    assert (await near.signals([run_id]))[run_id].listeners == 0


async def test_it_does_not_know_runs_that_never_were(bus: RunBus) -> None:
    run_id = uuid.uuid4()
    assert not await bus.knows(run_id)
    with pytest.raises(RunLostError):
        await collect(bus, run_id)


async def test_it_stops_counting_a_listener_that_was_cut_off(bus: RunBus) -> None:
    run_id = uuid.uuid4()
    await bus.open(run_id)
    listening = asyncio.create_task(collect(bus, run_id))
    while not (await bus.signals([run_id]))[run_id].listeners:  # noqa: ASYNC110
        await asyncio.sleep(0)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert (await bus.signals([run_id]))[run_id].listeners == 0


async def test_it_forgets_finished_runs_after_their_time() -> None:
    now = 0.0
    bus = InProcessBus(clock=lambda: now)
    finished, running = uuid.uuid4(), uuid.uuid4()
    await bus.open(finished)
    await bus.open(running)
    await publish(bus, finished, frame(1, final=True))
    now = FINISHED_TTL_S - 1
    assert await bus.knows(finished)
    now = FINISHED_TTL_S
    assert not await bus.knows(finished)
    assert await bus.knows(running)


@needs_redis
async def test_its_keys_in_redis_all_expire() -> None:
    from redis.asyncio import Redis

    bus, far = make_bus("redis"), make_bus("redis")
    run_id = uuid.uuid4()
    await bus.open(run_id)
    async with aclosing(far.subscribe(run_id, after=0, idle_s=0.02)) as frames:
        await anext(frames)
        await far.request_stop(run_id)
        await publish(bus, run_id, frame(1, final=True))
        while await anext(frames) != frame(1, final=True):
            pass
        client = Redis.from_url(redis_url(), decode_responses=True)
        keys = [key async for key in client.scan_iter(f"docmind:run:{run_id}:*")]
        assert sorted(key.rpartition(":")[2] for key in keys) == ["alive", "events", "listeners", "stop"]
        assert all([0 < await client.ttl(key) <= FINISHED_TTL_S for key in keys])
        await client.aclose()
    await far.close()
    await bus.close()


async def _until_lost(frames: AsyncIterator[Frame | None]) -> AsyncIterator[Frame | None]:
    """What comes until the run is lost; fails where it ends otherwise."""
    try:
        async for item in frames:
            yield item
    except RunLostError:
        return
    pytest.fail("the listener was not told")


@needs_redis
async def test_a_listener_elsewhere_learns_that_the_runs_process_has_died() -> None:
    from redis.asyncio import Redis

    bus, far = make_bus("redis"), make_bus("redis")
    run_id = uuid.uuid4()
    await bus.open(run_id)
    await publish(bus, run_id, frame(1))
    async with aclosing(far.subscribe(run_id, after=0, idle_s=0.02)) as frames:
        while await anext(frames) != frame(1):
            pass
        client = Redis.from_url(redis_url())
        await client.delete(f"docmind:run:{run_id}:alive")
        await client.aclose()
        assert [item async for item in _until_lost(frames) if item is not None] == []
    await far.close()
    await publish(bus, run_id, frame(2, final=True))
    await bus.close()


async def test_a_run_goes_on_where_it_is_when_redis_is_down() -> None:
    pytest.importorskip("redis")
    from apps.chat.redis_bus import RedisBus

    bus = RedisBus("redis://127.0.0.1:1/0")
    run_id = uuid.uuid4()
    await bus.open(run_id)
    await publish(bus, run_id, frame(1), frame(2, final=True))
    assert [item.seq for item in await collect(bus, run_id)] == [1, 2]
    assert (await bus.signals([run_id]))[run_id] == Signals(stop=False, listeners=0)
    assert bus._mirror_task is not None
    bus._mirror_task.cancel()
    await bus.close()
