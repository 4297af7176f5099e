"""How a remote chat model is called: the same for every vendor.

1. An attempt opens the vendor's stream. Until its first delta, a ServiceError starts another one, after a pause
   that doubles each time, has jitter, and is never shorter than the service's Retry-After.
2. All attempts and pauses together have `timeout_s` for the first delta; each later delta has `timeout_s` of its own.
3. Once something was yielded there is no other attempt: trouble ends the stream with StreamEnd(finish_reason="cut").
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from apps.aiconfig.providers.failures import ServiceError, timed_out
from apps.aiconfig.providers.types import ChatDelta, StreamEnd
from docmind.errors import DocMindError
from docmind.telemetry import get_logger

logger = get_logger(__name__)

Attempt = Callable[[], AsyncGenerator[ChatDelta, None]]
"""Opens one stream that ends with a StreamEnd; closing it closes the connection. Raises DocMindError."""
Sleep = Callable[[float], Awaitable[object]]

ATTEMPTS = 3
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0


async def stream_attempts(
    attempt: Attempt, *, provider: str, timeout_s: float, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[ChatDelta, None]:
    """The deltas of the first attempt that gets one."""
    stream, delta = await _first_delta(attempt, provider=provider, timeout_s=timeout_s, sleep=sleep)
    async with aclosing(stream):
        yield delta
        while not isinstance(delta, StreamEnd):
            try:
                async with asyncio.timeout(timeout_s):
                    delta = await anext(stream)
            except (DocMindError, TimeoutError) as error:
                logger.warning("model_stream_cut", provider=provider, reason=str(error) or "timeout")
                delta = StreamEnd(finish_reason="cut")
            yield delta


async def _first_delta(
    attempt: Attempt, *, provider: str, timeout_s: float, sleep: Sleep
) -> tuple[AsyncGenerator[ChatDelta, None], ChatDelta]:
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    number = 0
    while True:
        number += 1
        stream = attempt()
        try:
            async with asyncio.timeout_at(deadline):
                return stream, await anext(stream)
        except TimeoutError:
            await stream.aclose()
            raise timed_out() from None
        except ServiceError as trouble:
            await stream.aclose()
            pause_s = _pause_s(number, trouble.retry_after_s)
            if number == ATTEMPTS or clock() + pause_s >= deadline:
                raise
            logger.warning(
                "model_call_repeated", provider=provider, code=trouble.code, attempt=number, pause_s=round(pause_s, 2)
            )
        await sleep(pause_s)


def _pause_s(number: int, retry_after_s: float | None) -> float:
    """Half of the doubling pause is certain, half is chance."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (number - 1))
    return max(retry_after_s or 0.0, random.uniform(longest / 2, longest))  # noqa: S311 - not a secret
