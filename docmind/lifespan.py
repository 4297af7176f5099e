"""The web server's beginning and end, as the ASGI lifespan protocol tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import jieba
from django.conf import settings

from apps.aiconfig.providers.registry import close_providers, current_providers
from apps.chat.runs import shutdown_runs
from apps.chat.tasks import fail_lost_runs
from docmind.executor import run_blocking, run_db
from docmind.telemetry import get_logger
from docmind.vectors import get_vector_store

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

logger = get_logger(__name__)


async def live(receive: Receive, send: Send) -> None:
    """Startup does not wait for the warm-up; shutdown ends runs (they become stopped messages) and closes clients."""
    await receive()
    warming = asyncio.create_task(_warm_up())
    await send({"type": "lifespan.startup.complete"})
    await receive()
    warming.cancel()
    await asyncio.gather(warming, return_exceptions=True)
    try:
        await shutdown_runs()
        await close_providers()
        await run_blocking(get_vector_store().close)
    except Exception as error:  # the boundary of the process: whatever it is, the server says so and ends
        logger.exception("shutdown_failed")
        await send({"type": "lifespan.shutdown.failed", "message": str(error)})
    else:
        await send({"type": "lifespan.shutdown.complete"})


async def _warm_up() -> None:
    """What the first question would otherwise wait for. A part that fails here is met again when it is needed."""
    steps: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
        ("lost runs", lambda: run_db(fail_lost_runs)),
        ("segmentation", lambda: run_blocking(jieba.initialize)),
        ("providers", lambda: run_blocking(current_providers)),
        ("embedding", _embed_a_word),
        ("vectors", lambda: run_blocking(get_vector_store().ping)),
    )
    for name, step in steps:
        try:
            await step()
        except Exception:  # the boundary of a background task
            logger.warning("warm_up_failed", step=name, exc_info=True)


async def _embed_a_word() -> None:
    embedder = current_providers().embedder
    if embedder is not None and settings.EMBEDDING_PROVIDER == "local":
        await embedder.embed(["docmind"], "query")
