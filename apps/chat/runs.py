"""Runs: each question is answered in a task of its own that outlives its request.

A run has two tasks. The driver's produces events and is what a stop cancels; the other one takes the events, folds them
into the message's state, writes the final state and publishes, and is never cancelled. All runs of a process share two
loops: one watches for stop signals and lost clients, one writes text and heartbeats once a second.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import Error as DatabaseError
from django.utils import translation
from django.utils.translation import gettext as _

from apps.chat.bus import RunBus, build_bus
from apps.chat.pipeline.driver import answer, stopped_early
from apps.chat.pipeline.events import Done, Error, Event
from apps.chat.pipeline.types import AskRequest, PipelineDeps
from apps.chat.recorder import MessageState, Progress, fold, record_final, record_progress
from apps.chat.sse import to_frame
from docmind.executor import run_db
from docmind.telemetry import get_logger

logger = get_logger(__name__)

WATCH_S: Final = 0.25
FLUSH_S: Final = 1.0
SHUTDOWN_S: Final = 10.0
FIRST_LISTENER_S: Final = 5.0
"""A run waits at least this long for its first listener, however short the grace time."""


def process_id() -> str:
    """This process as message rows name it."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}"


@dataclass(slots=True)
class _Run:
    request: AskRequest
    deps: PipelineDeps
    heard_at: float
    """When somebody last listened, or the run began; monotonic seconds."""
    was_heard: bool = False
    events: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    state: MessageState = field(default_factory=MessageState)
    seq: int = 0
    driver: asyncio.Task[None] | None = None
    stopping: bool = False

    @property
    def grace_s(self) -> float:
        """How long it may go unheard."""
        grace_s = self.request.config.sse_disconnect_grace_s
        return grace_s if self.was_heard else max(grace_s, FIRST_LISTENER_S)

    def stop(self) -> None:
        """Cancel the driver, once: it answers with its last event."""
        if not self.stopping and self.driver is not None:
            self.stopping = True
            self.driver.cancel()


class RunManager:
    """The runs of this process, in one event loop."""

    def __init__(self, bus: RunBus, *, watch_s: float = WATCH_S, flush_s: float = FLUSH_S) -> None:
        self.bus = bus
        self._runs: dict[UUID, _Run] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watch_s = watch_s
        self._flush_s = flush_s
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._is_shutting_down = False

    async def start(self, request: AskRequest, deps: PipelineDeps) -> None:
        """Begin a run; when this returns, it can be listened to and stopped."""
        await self.bus.open(request.run_id)
        run = _Run(request=request, deps=deps, heard_at=time.monotonic())
        self._runs[request.run_id] = run
        run.driver = self._spawn(_produce(run))
        # Also when it was cancelled before its first step, in which no code of its own would run.
        run.driver.add_done_callback(lambda _: run.events.put_nowait(None))
        self._spawn(self._consume(run))
        self._keep_looping()
        if self._is_shutting_down:
            run.stop()

    async def stop(self, run_id: UUID) -> None:
        """Stop a run, in whichever process it is; one that has ended stays as it is."""
        if run := self._runs.get(run_id):
            run.stop()
        else:
            await self.bus.request_stop(run_id)

    @property
    def running(self) -> frozenset[UUID]:
        return frozenset(self._runs)

    async def shutdown(self) -> None:
        """End all runs as stopped, with their text, and close the bus."""
        self._is_shutting_down = True
        for run in list(self._runs.values()):
            run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SHUTDOWN_S)
        for task in (*self._tasks, *self._loops.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._loops.values(), return_exceptions=True)
        await self.bus.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # An empty context: nothing of the request that began the run reaches into it.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _consume(self, run: _Run) -> None:
        structlog.contextvars.bind_contextvars(run_id=str(run.request.run_id))
        try:
            while (event := await run.events.get()) is not None:
                await self._pass_on(run, event)
                if isinstance(event, Done | Error):
                    return
            with translation.override(run.request.interface_language):
                last = stopped_early(run.request, run.deps) if run.stopping else _internal_error()
            await self._pass_on(run, last)
        except Exception:  # the boundary of a run: whoever listens must learn that it has ended
            logger.exception("run_broken")
            run.stop()
            run.seq += 1
            await self.bus.publish(run.request.run_id, to_frame(run.request.run_id, run.seq, _internal_error()))
        finally:
            del self._runs[run.request.run_id]

    async def _pass_on(self, run: _Run, event: Event) -> None:
        run.state = fold(run.state, event)
        if isinstance(event, Done | Error):
            event = await self._write_final(run, event)
        run.seq += 1
        await self.bus.publish(run.request.run_id, to_frame(run.request.run_id, run.seq, event))

    async def _write_final(self, run: _Run, event: Done | Error) -> Done | Error:
        """Write the row before the last event goes out, so that whoever reads it then finds it finished."""
        try:
            await run_db(record_final, run.request.message_id, run.state)
        except DatabaseError:
            logger.exception("answer_not_recorded", message_id=run.request.message_id)
            if isinstance(event, Done):
                with translation.override(run.request.interface_language):
                    notice = _("The answer could not be saved: the database is not available.")
                return replace(event, notice=f"{event.notice} {notice}".strip())
        return event

    def _keep_looping(self) -> None:
        """Both loops end by themselves when no run is left, and begin again with the next one."""
        for work, period_s in ((self._heed_signals, self._watch_s), (self._flush, self._flush_s)):
            loop = self._loops.get(work.__name__)
            if loop is None or loop.done():
                loop = asyncio.create_task(self._every(period_s, work), context=contextvars.Context())
                self._loops[work.__name__] = loop

    async def _every(self, period_s: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `work` at a period while there are runs. A failure is logged and does not end the loop."""
        while self._runs:
            try:
                await work()
            except Exception:  # the boundary of one round
                logger.exception("run_loop_failed", work=work.__name__)
            await asyncio.sleep(period_s)

    async def _heed_signals(self) -> None:
        signals = await self.bus.signals(self.running)
        now = time.monotonic()
        for run_id, signal in signals.items():
            run = self._runs.get(run_id)
            if run is None:
                continue
            if signal.listeners:
                run.heard_at, run.was_heard = now, True
            if signal.stop:
                run.stop()
            elif now - run.heard_at > run.grace_s and not run.stopping:
                logger.info("run_abandoned", run_id=str(run_id))
                run.stop()

    async def _flush(self) -> None:
        progress = [
            Progress(message_id=run.request.message_id, content=run.state.content) for run in self._runs.values()
        ]
        await run_db(record_progress, progress)


async def _produce(run: _Run) -> None:
    """Iterate the driver. It has no await of its own, so that a cancellation always reaches the driver."""
    structlog.contextvars.bind_contextvars(run_id=str(run.request.run_id))
    events: AsyncGenerator[Event, None] = answer(run.request, run.deps)
    async with aclosing(events):
        try:
            async for event in events:
                run.events.put_nowait(event)
        except Exception:  # the boundary of a run
            logger.exception("answer_crashed")
            run.events.put_nowait(_internal_error())


def _internal_error() -> Error:
    return Error(
        code="internal_error", message=_("Something went wrong on the server. It has been logged."), retryable=True
    )


class _Held:
    manager: RunManager | None = None


def current_runs() -> RunManager:
    """The manager of this process, made at the first question."""
    if _Held.manager is None:
        _Held.manager = RunManager(build_bus())
    return _Held.manager


async def shutdown_runs() -> None:
    """End all runs of this process, at the web server's shutdown."""
    manager, _Held.manager = _Held.manager, None
    if manager is not None:
        await manager.shutdown()
