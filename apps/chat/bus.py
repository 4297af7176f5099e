"""The bus between a run and whoever listens: frames in order, from any position; stop signals; a count of listeners.

Two implementations: within one process (here), and across processes over Redis streams (`apps.chat.redis_bus`).
Frame numbers of a run are 1, 2, 3 … without gaps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

FINISHED_TTL_S: Final = 600.0
"""How long a finished run can still be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One event on the wire: number, name, and its JSON text. `final` ends the run."""

    seq: int
    name: str
    data: str
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the outside says about a run."""

    stop: bool
    listeners: int


class RunLostError(Exception):
    """The run is not on the bus: it has expired, its process has died, or it never was."""


class RunBus(Protocol):
    async def open(self, run_id: UUID) -> None:
        """Make a run known before its first frame."""
        ...

    async def publish(self, run_id: UUID, frame: Frame) -> None:
        """Append the next frame. Only the process that opened the run publishes."""
        ...

    async def knows(self, run_id: UUID) -> bool:
        """Whether the run can be listened to."""
        ...

    def subscribe(self, run_id: UUID, *, after: int, idle_s: float) -> AsyncGenerator[Frame | None, None]:
        """Frames behind number `after`, up to the final one; None whenever `idle_s` passed without a frame.

        Counts as a listener while it is iterated; close it. Raises RunLostError when the run is not there (any more).
        """
        ...

    async def request_stop(self, run_id: UUID) -> None:
        """Ask the process that holds the run to stop it."""
        ...

    async def signals(self, run_ids: Collection[UUID]) -> dict[UUID, Signals]:
        """The signals of runs that this process opened."""
        ...

    async def close(self) -> None:
        """Let go of connections and tasks."""
        ...


@dataclass(slots=True)
class _Run:
    frames: list[Frame] = field(default_factory=list)
    stop: bool = False
    listeners: int = 0
    finished_at: float | None = None
    waiters: set[asyncio.Future[None]] = field(default_factory=set)

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class InProcessBus:
    """Frames in memory, for one event loop."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs: dict[UUID, _Run] = {}
        self._clock = clock

    async def open(self, run_id: UUID) -> None:
        self._forget_expired()
        self._runs[run_id] = _Run()

    async def publish(self, run_id: UUID, frame: Frame) -> None:
        run = self._runs[run_id]
        run.frames.append(frame)
        if frame.final:
            run.finished_at = self._clock()
        run.wake()

    async def knows(self, run_id: UUID) -> bool:
        return self.has(run_id)

    def has(self, run_id: UUID) -> bool:
        """The same, for a caller that does not wait."""
        self._forget_expired()
        return run_id in self._runs

    def is_finished(self, run_id: UUID) -> bool:
        """Whether the run's final frame has been published."""
        run = self._runs.get(run_id)
        return run is not None and run.finished_at is not None

    async def subscribe(self, run_id: UUID, *, after: int, idle_s: float) -> AsyncGenerator[Frame | None, None]:
        if not self.has(run_id):
            raise RunLostError
        run = self._runs[run_id]
        run.listeners += 1
        try:
            position = after
            while True:
                frames = await self.read(run_id, after=position, idle_s=idle_s)
                if not frames and run.finished_at is not None:
                    return
                for frame in frames:
                    yield frame
                    position = frame.seq
                    if frame.final:
                        return
                if not frames:
                    yield None
        finally:
            run.listeners -= 1

    async def read(self, run_id: UUID, *, after: int, idle_s: float) -> list[Frame]:
        """All frames behind number `after`; waits up to `idle_s` for the first. Not counted as listening."""
        run = self._runs.get(run_id)
        if run is None:
            raise RunLostError
        if after >= len(run.frames) and run.finished_at is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            run.waiters.add(waiter)
            try:
                await asyncio.wait({waiter}, timeout=idle_s)
            finally:
                run.waiters.discard(waiter)
        return run.frames[after:]

    def frames_behind(self, run_id: UUID, after: int) -> list[Frame]:
        """What has come behind number `after`, at once; nothing of a run that is not there."""
        run = self._runs.get(run_id)
        return run.frames[after:] if run else []

    async def request_stop(self, run_id: UUID) -> None:
        if run := self._runs.get(run_id):
            run.stop = True

    async def signals(self, run_ids: Collection[UUID]) -> dict[UUID, Signals]:
        return {
            run_id: Signals(stop=run.stop, listeners=run.listeners)
            for run_id in run_ids
            if (run := self._runs.get(run_id)) is not None
        }

    async def close(self) -> None:
        for run in self._runs.values():
            run.wake()

    def _forget_expired(self) -> None:
        horizon = self._clock() - FINISHED_TTL_S
        expired = [key for key, run in self._runs.items() if run.finished_at is not None and run.finished_at <= horizon]
        for key in expired:
            del self._runs[key]


def build_bus() -> RunBus:
    """The bus that settings choose. The Redis client is an optional dependency, so its module is loaded by name."""
    if not settings.REDIS_URL:
        return InProcessBus()
    bus: RunBus = import_string("apps.chat.redis_bus.RedisBus")(settings.REDIS_URL)
    return bus
