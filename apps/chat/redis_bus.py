"""The bus across web processes: a run's own process serves its listeners from memory and mirrors the run to Redis.

Redis being slow or down therefore delays and loses nothing where the run is; what was missed is mirrored once Redis is
back. Keys of a run, all of which expire:

- `events`: a stream, entry id `{number}-0`;
- `alive`: renewed while the run's process lives, kept FINISHED_TTL_S once it has finished;
- `stop`: set by whoever wants the run stopped;
- `listeners`: a sorted set of the listeners in other processes, scored by the Redis time at which each one lapses.
"""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError

from apps.chat.bus import FINISHED_TTL_S, Frame, InProcessBus, RunLostError, Signals
from docmind.telemetry import get_logger

logger = get_logger(__name__)

ALIVE_TTL_S: Final = 30
RENEW_S: Final = 5.0
LISTENER_TTL_S: Final = 15
BATCH_PAUSE_S: Final = 0.02
"""Frames that come within this time are mirrored together."""
RETRY_S: Final = 1.0
CALL_TIMEOUT_S: Final = 2.0
_FAILURES = (RedisError, OSError, TimeoutError)


def _key(run_id: UUID, part: str) -> str:
    return f"docmind:run:{run_id}:{part}"


@dataclass(slots=True)
class _Mirrored:
    """How far a run has been copied: the number of the last frame, and when its keys were renewed (loop time)."""

    renewed_at: float
    seq: int = 0


class RedisBus:
    def __init__(self, url: str) -> None:
        # Longer than a blocking read, which lasts up to RENEW_S.
        self._redis: Redis = Redis.from_url(
            url, decode_responses=True, protocol=2, socket_timeout=2 * RENEW_S, socket_connect_timeout=CALL_TIMEOUT_S
        )
        self._local = InProcessBus()
        self._mirrored: dict[UUID, _Mirrored] = {}
        self._must_look_up = False
        self._mirror_task: asyncio.Task[None] | None = None

    async def open(self, run_id: UUID) -> None:
        await self._local.open(run_id)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._redis.set(_key(run_id, "alive"), "1", ex=ALIVE_TTL_S)
        except _FAILURES as error:
            logger.warning("run_not_mirrored", run_id=str(run_id), reason=str(error))
        self._mirrored[run_id] = _Mirrored(renewed_at=asyncio.get_running_loop().time())
        if self._mirror_task is None or self._mirror_task.done():
            self._mirror_task = asyncio.create_task(self._mirror(), context=contextvars.Context())

    async def publish(self, run_id: UUID, frame: Frame) -> None:
        await self._local.publish(run_id, frame)

    async def knows(self, run_id: UUID) -> bool:
        if self._local.has(run_id):
            return True
        try:
            return bool(await self._redis.exists(_key(run_id, "alive")))
        except _FAILURES as error:
            logger.warning("run_bus_unreachable", reason=str(error))
            return False

    async def subscribe(self, run_id: UUID, *, after: int, idle_s: float) -> AsyncGenerator[Frame | None, None]:
        if self._local.has(run_id):
            listen = self._local.subscribe(run_id, after=after, idle_s=idle_s)
        else:
            listen = self._subscribe_remote(run_id, after=after, idle_s=idle_s)
        try:
            async for frame in listen:
                yield frame
        finally:
            await listen.aclose()

    async def request_stop(self, run_id: UUID) -> None:
        await self._local.request_stop(run_id)
        if not self._local.has(run_id):
            await self._redis.set(_key(run_id, "stop"), "1", ex=int(FINISHED_TTL_S))

    async def signals(self, run_ids: Collection[UUID]) -> dict[UUID, Signals]:
        local = await self._local.signals(run_ids)
        if not local:
            return local
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                remote = await self._remote_signals(list(local))
        except _FAILURES as error:
            logger.warning("run_signals_unreadable", reason=str(error))
            return local
        return {
            run_id: Signals(stop=mine.stop or remote[run_id].stop, listeners=mine.listeners + remote[run_id].listeners)
            for run_id, mine in local.items()
        }

    async def close(self) -> None:
        for run_id in [run_id for run_id in self._mirrored if not self._local.is_finished(run_id)]:
            del self._mirrored[run_id]
        if self._mirror_task is not None:
            # The ends of runs still go out: listeners elsewhere learn of them.
            await asyncio.wait({self._mirror_task}, timeout=CALL_TIMEOUT_S)
            self._mirror_task.cancel()
            await asyncio.gather(self._mirror_task, return_exceptions=True)
        await self._local.close()
        await self._redis.aclose()

    async def _remote_signals(self, run_ids: list[UUID]) -> dict[UUID, Signals]:
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.time()
        for run_id in run_ids:
            pipeline.exists(_key(run_id, "stop"))
            pipeline.zrange(_key(run_id, "listeners"), 0, -1, withscores=True)
        (seconds, _), *replies = await pipeline.execute()
        return {
            run_id: Signals(stop=bool(stop), listeners=sum(lapses > seconds for _, lapses in listeners))
            for run_id, stop, listeners in zip(run_ids, replies[::2], replies[1::2], strict=True)
        }

    async def _mirror(self) -> None:
        """Copy the frames of all runs to Redis, in order and each once, until no run is left to copy."""
        while self._mirrored:
            try:
                await self._copy()
                await asyncio.sleep(BATCH_PAUSE_S)
            except _FAILURES as error:
                logger.warning("run_mirror_interrupted", runs=len(self._mirrored), reason=str(error))
                await asyncio.sleep(RETRY_S)
                self._must_look_up = True

    async def _copy(self) -> None:
        """One round: everything new of every run in one pipeline."""
        if self._must_look_up:
            for run_id, mirrored in list(self._mirrored.items()):
                mirrored.seq = await self._last_mirrored(run_id)
            self._must_look_up = False
        now = asyncio.get_running_loop().time()
        pipeline = self._redis.pipeline(transaction=False)
        written: list[tuple[UUID, _Mirrored, list[Frame]]] = []
        for run_id, mirrored in self._mirrored.items():
            frames = self._local.frames_behind(run_id, mirrored.seq)
            if frames or now - mirrored.renewed_at >= RENEW_S:
                self._write(pipeline, run_id, frames)
                mirrored.renewed_at = now
                written.append((run_id, mirrored, frames))
        if written:
            await pipeline.execute()
        for run_id, mirrored, frames in written:
            if frames:
                mirrored.seq = frames[-1].seq
            if not self._local.has(run_id) or (frames and frames[-1].final):
                self._mirrored.pop(run_id, None)

    @staticmethod
    def _write(pipeline: Pipeline, run_id: UUID, frames: list[Frame]) -> None:
        for frame in frames:
            entry: dict[Any, Any] = {"name": frame.name, "data": frame.data, "final": int(frame.final)}
            pipeline.xadd(_key(run_id, "events"), entry, id=f"{frame.seq}-0")
        life_s = int(FINISHED_TTL_S) if frames and frames[-1].final else ALIVE_TTL_S
        pipeline.set(_key(run_id, "alive"), "1", ex=life_s)
        pipeline.expire(_key(run_id, "events"), life_s)

    async def _last_mirrored(self, run_id: UUID) -> int:
        """The number of the last frame that Redis holds: a write may have arrived although its reply was lost."""
        last = await self._last(run_id)
        return last.seq if last else 0

    async def _last(self, run_id: UUID) -> Frame | None:
        entries: Any = await self._redis.xrevrange(_key(run_id, "events"), count=1)
        return _frame(*entries[0]) if entries else None

    async def _subscribe_remote(self, run_id: UUID, *, after: int, idle_s: float) -> AsyncGenerator[Frame | None, None]:
        listener = uuid.uuid4().hex
        events, clock = _key(run_id, "events"), asyncio.get_running_loop().time
        position, spoke_at, renewed_at = after, clock(), float("-inf")
        block_ms: int | None = None  # the first read does not wait: the run may be over
        try:
            while True:
                if clock() - renewed_at >= RENEW_S:
                    await self._renew_listener(run_id, listener)
                    renewed_at = clock()
                reply = await self._redis.xread({events: f"{position}-0"}, count=500, block=block_ms)
                block_ms = max(1, int(1000 * min(RENEW_S, idle_s)))
                frames = _frames(reply)
                for frame in frames:
                    yield frame
                    position, spoke_at = frame.seq, clock()
                    if frame.final:
                        return
                if not frames and await self._is_over(run_id, position):
                    return
                if clock() - spoke_at >= idle_s:
                    yield None
                    spoke_at = clock()
        except _FAILURES as error:
            logger.warning("run_listener_interrupted", run_id=str(run_id), reason=str(error))
        finally:
            await self._drop_listener(run_id, listener)

    async def _is_over(self, run_id: UUID, position: int) -> bool:
        """Whether the final frame lies at or before `position`. Raises RunLostError when the run's process has died."""
        last = await self._last(run_id)
        if last is not None and last.final and last.seq <= position:
            return True
        if not await self._redis.exists(_key(run_id, "alive")):
            raise RunLostError
        return False

    async def _renew_listener(self, run_id: UUID, listener: str) -> None:
        seconds, _ = await self._redis.time()
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.zadd(_key(run_id, "listeners"), {listener: seconds + LISTENER_TTL_S})
        pipeline.expire(_key(run_id, "listeners"), int(FINISHED_TTL_S))
        await pipeline.execute()

    async def _drop_listener(self, run_id: UUID, listener: str) -> None:
        try:
            await self._redis.zrem(_key(run_id, "listeners"), listener)
        except _FAILURES as error:
            logger.warning("run_listener_left_behind", run_id=str(run_id), reason=str(error))


def _frames(reply: Any) -> list[Frame]:
    """Frames of an XREAD reply about one stream."""
    return [_frame(entry, values) for _, entries in reply or () for entry, values in entries]


def _frame(entry: str, values: dict[str, str]) -> Frame:
    number = int(entry.partition("-")[0])
    return Frame(seq=number, name=values["name"], data=values["data"], final=values["final"] == "1")
