"""Blocking work off the event loop.

Database work goes through one bounded pool, so that 200 runs do not hold 200 connections; other blocking calls
(a local model, an SDK without async) have a pool of their own and cannot starve it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_THREADS = 8
BLOCKING_THREADS = 16

_database = ThreadPoolExecutor(DATABASE_THREADS, thread_name_prefix="docmind-db")
_blocking = ThreadPoolExecutor(BLOCKING_THREADS, thread_name_prefix="docmind-blocking")


async def run_db(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that uses the ORM and give its connection back afterwards."""

    def call() -> T:
        close_old_connections()
        try:
            return func(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(_database, call)


async def run_blocking(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that blocks on something other than the database."""
    return await asyncio.get_running_loop().run_in_executor(_blocking, partial(func, *args, **kwargs))
