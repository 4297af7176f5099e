"""A loopback HTTP server in a thread of its own, with a record of what it was sent."""

from __future__ import annotations

import argparse
import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.standins.script import Reply, from_prompt

WAIT_S = 5.0
"""Longest wait for something that a test expects to happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class StandIn:
    """Base of the servers: a subclass names its routes. Use as a context manager, or `run_forever` by hand."""

    path = ""

    def __init__(self, *, api_key: str | None = None, models: frozenset[str] | None = None) -> None:
        """Any key and any model will do if they are None."""
        self.api_key = api_key
        self.models = models
        self.pace_s = 0.0
        self.first_delay_s = 0.0
        self.requests: list[ReceivedRequest] = []
        self.port = 0
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._disconnected = threading.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: web.AppRunner | None = None

    def script(self, *replies: Reply) -> None:
        """The next replies, in order; after them, and without them, the answer is made from the prompt."""
        for reply in replies:
            self._replies.put(reply)

    def wait_for_disconnect(self) -> bool:
        """Whether a client went away in the middle of a reply: waits for it."""
        return self._disconnected.acquire(timeout=WAIT_S)

    def next_reply(self, messages: list[dict[str, Any]]) -> Reply:
        try:
            return self._replies.get_nowait()
        except queue.Empty:
            return from_prompt(messages, delay_s=self.pace_s, first_delay_s=self.first_delay_s)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raise AssertionError("a subclass answers")

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._on_loop(self._loop, self.start(0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all connections and free the port; a second call does nothing."""
        if self._runner is None or self._loop is None:
            return
        self._on_loop(self._loop, self._runner.cleanup())
        self._runner = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    @staticmethod
    def _on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(WAIT_S)

    async def start(self, port: int) -> None:
        app = web.Application()
        app.router.add_post(self.path, self._watched)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _watched(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self.handle(request)
        except (asyncio.CancelledError, ConnectionError):
            self._disconnected.release()
            raise


def close_abruptly(request: web.Request) -> None:
    """End the TCP connection as a crashed server does."""
    if request.transport is not None:
        request.transport.abort()


async def send_pieces(reply: Reply, send: Callable[[int], Awaitable[None]], request: web.Request) -> bool:
    """Send the reply's pieces by `send(number)` at its pace. False where a cut ended it."""
    for number in range(len(reply.pieces) + 1):
        if reply.cut_after == number:
            close_abruptly(request)
            return False
        if reply.hang_after == number:
            await asyncio.Event().wait()
        if number < len(reply.pieces):
            await asyncio.sleep(reply.delay_s if number else reply.first_delay_s)
            await send(number)
    return True


def run_from_command_line(make: Callable[[str | None], StandIn], variable: str, suffix: str) -> None:
    """Serve until interrupted; prints the setting that makes DocMind use the server."""
    parser = argparse.ArgumentParser(description="A stand-in for a model service, on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="pause between pieces")
    parser.add_argument("--first-delay-ms", type=float, default=0.0, help="pause before the first piece")
    parser.add_argument("--key", default=None, help="the only API key that is taken; any without it")
    options = parser.parse_args()
    stand_in = make(options.key)
    stand_in.pace_s, stand_in.first_delay_s = options.delay_ms / 1000, options.first_delay_ms / 1000

    async def serve() -> None:
        await stand_in.start(options.port)
        print(f"{variable}=http://127.0.0.1:{stand_in.port}{suffix}", flush=True)  # noqa: T201
        await asyncio.Event().wait()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())
