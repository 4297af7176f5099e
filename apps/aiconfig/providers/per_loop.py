"""Keeps one resource for each event loop, because an async client's connections belong to the loop that made them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """The running loop's own; made at the first call."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            held = self._held[loop] = self._make()
        return held

    async def close(self) -> None:
        """Close the running loop's own, if there is one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await self._close(held)
