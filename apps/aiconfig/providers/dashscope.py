"""Alibaba Cloud's DashScope through its own SDK (AioGeneration, message format, incremental streaming).

The SDK gets a session of its own for each call, on connections that are shared: so the address and the key need no
global variable, and an answer that is broken off closes its connection at that moment, not when the SDK's nested
generators are collected.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from dashscope import AioGeneration
from dashscope.api_entities.aio_session import get_ssl_context
from django.utils.translation import gettext as _

from apps.aiconfig.providers.attempts import Sleep, stream_attempts
from apps.aiconfig.providers.failures import from_status, timed_out, unreachable, unreadable
from apps.aiconfig.providers.per_loop import PerLoop
from apps.aiconfig.providers.types import ChatDelta, ChatRequest, FinishReason, StreamEnd, TextDelta, ThinkingDelta
from docmind.errors import DocMindError, PermanentError

CONNECT_TIMEOUT_S = 10.0
_LARGEST_TEMPERATURE = 1.99
"""The service refuses 2."""

# Errors inside a stream come without a status; the code tells.
_STATUS_OF_CODE = {
    "throttling": 429,
    "limitrequests": 429,
    "serviceunavailable": 503,
    "internalerror": 500,
    "systemerror": 500,
    "requesttimeout": 408,
    "responsetimeout": 408,
    "modelnotfound": 404,
    "modelserviceunavailable": 503,
    "modelservingerror": 503,
}


class _Connector(aiohttp.TCPConnector):
    """Limits the time of making a connection; the SDK limits only that of reading."""

    async def connect(self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout) -> Any:  # noqa: ASYNC109
        limited = aiohttp.ClientTimeout(
            total=timeout.total,
            connect=timeout.connect,
            sock_read=timeout.sock_read,
            sock_connect=CONNECT_TIMEOUT_S,
        )
        return await super().connect(req, traces, limited)


class DashScopeChat:
    name = "dashscope"
    is_generative = True

    def __init__(self, *, api_key: str, base_url: str = "", sleep: Sleep = asyncio.sleep) -> None:
        """`base_url` as in DASHSCOPE_HTTP_BASE_URL (`https://host/api/v1`); empty for the SDK's own."""
        self._api_key = api_key
        self._base_url = base_url or None
        self._sleep = sleep
        self._connectors = PerLoop(_make_connector, _close_connector)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        if not self._api_key:
            raise PermanentError(_("No DashScope API key is set."), code="model_not_configured")
        deltas = stream_attempts(
            lambda: self._attempt(request), provider=self.name, timeout_s=request.timeout_s, sleep=self._sleep
        )
        async with aclosing(deltas):
            async for delta in deltas:
                yield delta

    async def aclose(self) -> None:
        await self._connectors.close()

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        call = _Call()
        session = aiohttp.ClientSession(
            connector=self._connectors.get(), connector_owner=False, trace_configs=[call.trace()], trust_env=True
        )
        try:
            generation: Any = AioGeneration  # declared to return the reply types of the blocking API
            replies = await generation.call(
                model=request.model,
                messages=[{"role": message.role, "content": message.content} for message in request.messages],
                api_key=self._api_key,
                stream=True,
                incremental_output=True,
                result_format="message",
                temperature=min(request.temperature, _LARGEST_TEMPERATURE),
                max_tokens=request.max_output_tokens,
                request_timeout=request.timeout_s,
                base_address=self._base_url,
                session=session,
            )
            async for reply in replies:
                if reply.status_code != 200:
                    raise self._error_of(reply, call)
                for delta in call.read(reply):
                    yield delta
            yield call.end()
        except TimeoutError:
            raise timed_out() from None
        except (aiohttp.ClientError, OSError):
            raise unreachable() from None
        except (TypeError, KeyError, ValueError, AttributeError):  # the SDK on a reply of an unknown shape
            raise self._error_of_status(call) or unreadable() from None
        finally:
            call.close()
            await session.close()

    def _error_of(self, reply: Any, call: _Call) -> DocMindError:
        code, message = _code_and_message(reply)
        status = int(reply.status_code)
        if status == 500 and code == "Unknown" and call.status == 200:
            return unreadable()
        if call.status == 200 or not 400 <= status < 600:
            status = _STATUS_OF_CODE.get(code.lower().partition(".")[0], 400)
        return from_status(status, code=code, message=message, retry_after=call.retry_after, secrets=(self._api_key,))

    def _error_of_status(self, call: _Call) -> DocMindError | None:
        """For an error reply whose body the SDK could not read."""
        if call.status < 400:
            return None
        return from_status(call.status, retry_after=call.retry_after)


@dataclass(slots=True, kw_only=True)
class _Call:
    """What one attempt has seen so far: its HTTP responses (the SDK may send twice) and the state of the answer."""

    responses: list[aiohttp.ClientResponse] = field(default_factory=list)
    finish_reason: FinishReason = "cut"
    has_text: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None

    def trace(self) -> aiohttp.TraceConfig:
        async def keep(session: aiohttp.ClientSession, context: Any, params: aiohttp.TraceRequestEndParams) -> None:
            self.responses.append(params.response)

        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(keep)
        return trace

    @property
    def status(self) -> int:
        """The last response's HTTP status; 0 before there is one."""
        return self.responses[-1].status if self.responses else 0

    @property
    def retry_after(self) -> str | None:
        return self.responses[-1].headers.get("Retry-After") if self.responses else None

    def read(self, reply: Any) -> list[ChatDelta]:
        """The deltas in one piece of the stream."""
        usage = reply.usage or {}
        self.input_tokens = usage.get("input_tokens") or self.input_tokens
        self.output_tokens = usage.get("output_tokens") or self.output_tokens
        choices = (reply.output or {}).get("choices") or []
        if not choices:
            return []
        match choices[0].get("finish_reason"):
            case "length":
                self.finish_reason = "length"
            case None | "" | "null":
                pass
            case _:
                self.finish_reason = "stop"
        message = choices[0].get("message") or {}
        deltas: list[ChatDelta] = []
        if thinking := message.get("reasoning_content"):
            deltas.append(ThinkingDelta(text=thinking))
        if text := message.get("content"):
            deltas.append(TextDelta(text=text))
        self.has_text = self.has_text or bool(deltas)
        return deltas

    def end(self) -> StreamEnd:
        """The end of a stream that was closed in good order. Raises ServiceError if there was nothing in it."""
        if not self.has_text and self.finish_reason == "cut":
            raise unreadable()
        return StreamEnd(
            finish_reason=self.finish_reason, input_tokens=self.input_tokens, output_tokens=self.output_tokens
        )

    def close(self) -> None:
        """Close connections that are still in use; one that was read to its end is already back in the pool."""
        for response in self.responses:
            response.close()


def _code_and_message(reply: Any) -> tuple[str, str]:
    """The service's error; where the SDK did not understand it, it hands on the raw text of the reply."""
    code, message = str(reply.code or ""), str(reply.message or "")
    if code == "Unknown" and "{" in message:
        try:
            body = json.loads(message[message.index("{") : message.rindex("}") + 1])
            return str(body.get("code") or code), str(body.get("message") or "")
        except (ValueError, AttributeError):
            return code, ""
    return code, message


def _make_connector() -> _Connector:
    return _Connector(ssl=get_ssl_context(), limit=0)


async def _close_connector(connector: _Connector) -> None:
    await connector.close()
