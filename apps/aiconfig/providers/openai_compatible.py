"""OpenAI and everything that speaks its chat completions (vLLM, Ollama, Xinference …) through the openai SDK.

Such servers differ: fields are left out of a reply, optional parameters are refused. What is missing is read as
absent; a parameter that a model refuses is not sent to it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import openai
from django.utils.translation import gettext as _
from openai.types.chat import ChatCompletionChunk

from apps.aiconfig.providers.attempts import Sleep, stream_attempts
from apps.aiconfig.providers.failures import ServiceError, from_status, timed_out, unreachable, unreadable
from apps.aiconfig.providers.per_loop import PerLoop
from apps.aiconfig.providers.types import ChatDelta, ChatRequest, FinishReason, StreamEnd, TextDelta, ThinkingDelta
from docmind.errors import DocMindError, PermanentError

CONNECT_TIMEOUT_S = 10.0
_NO_KEY: Final = "none"
"""The SDK wants a key, and servers without one ignore it."""
_OPTIONAL_PARAMETERS: Final = ("stream_options", "max_completion_tokens", "max_tokens", "temperature")
_THINKING_FIELDS: Final = ("reasoning_content", "reasoning")


class OpenAICompatibleChat:
    name = "openai"
    is_generative = True

    def __init__(self, *, api_key: str = "", base_url: str = "", sleep: Sleep = asyncio.sleep) -> None:
        """`base_url` as in OPENAI_BASE_URL (`http://host:8000/v1`); empty for OpenAI itself, which needs a key."""
        self._api_key = api_key
        self._base_url = base_url
        self._sleep = sleep
        self._clients = PerLoop(self._make_client, _close_client)
        self._refused: set[tuple[str, str]] = set()
        """Model and optional parameter that it does not take."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        if not self._api_key and not self._base_url:
            raise PermanentError(_("Neither an OpenAI API key nor an address is set."), code="model_not_configured")
        deltas = stream_attempts(
            lambda: self._attempt(request), provider=self.name, timeout_s=request.timeout_s, sleep=self._sleep
        )
        async with aclosing(deltas):
            async for delta in deltas:
                yield delta

    async def aclose(self) -> None:
        await self._clients.close()

    def _make_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            api_key=self._api_key or _NO_KEY, base_url=self._base_url or "https://api.openai.com/v1", max_retries=0
        )

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        answer = _Answer()
        try:
            stream = await self._open(request)
            async with stream:
                async for chunk in stream:
                    for delta in answer.read(chunk):
                        yield delta
            yield answer.end()
        except openai.APITimeoutError:
            raise timed_out() from None
        except openai.APIConnectionError:
            raise unreachable() from None
        except openai.APIStatusError as error:
            raise self._error_of(error) from None
        except openai.APIError as error:  # inside the stream
            raise _error_in_stream(error, (self._api_key,)) from None
        except (TypeError, ValueError, AttributeError, KeyError):  # the SDK on a reply of an unknown shape
            raise unreadable() from None

    async def _open(self, request: ChatRequest) -> openai.AsyncStream[ChatCompletionChunk]:
        """The opened stream; asks again without a parameter that the model refuses."""
        while True:
            optional = self._optional_parameters(request)
            try:
                completions: Any = self._clients.get().chat.completions
                stream: openai.AsyncStream[ChatCompletionChunk] = await completions.create(
                    model=request.model,
                    messages=[{"role": message.role, "content": message.content} for message in request.messages],
                    stream=True,
                    timeout=openai.Timeout(request.timeout_s, connect=CONNECT_TIMEOUT_S),
                    **optional,
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                reason = f"{error.param} {error.message}"
                name = next((name for name in _OPTIONAL_PARAMETERS if name in reason and name in optional), None)
                if name is None:
                    raise
                self._refused.add((request.model, name))
            else:
                return stream

    def _optional_parameters(self, request: ChatRequest) -> dict[str, Any]:
        """`max_tokens` is what all servers know; OpenAI's newer models want it under another name."""
        taken: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            "max_tokens": request.max_output_tokens,
        }
        if (request.model, "max_tokens") in self._refused:
            taken["max_completion_tokens"] = request.max_output_tokens
        return {name: value for name, value in taken.items() if (request.model, name) not in self._refused}

    def _error_of(self, error: openai.APIStatusError) -> DocMindError:
        return from_status(
            error.status_code,
            code=str(error.code or ""),
            message=_vendor_message(error),
            retry_after=error.response.headers.get("Retry-After"),
            secrets=(self._api_key,),
        )


class _Answer:
    """Reads chunks in which any field may be missing."""

    def __init__(self) -> None:
        self.finish_reason: FinishReason | None = None
        self.has_text = False
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None

    def read(self, chunk: ChatCompletionChunk) -> list[ChatDelta]:
        """The deltas in one chunk."""
        usage: Any = getattr(chunk, "usage", None)
        if usage is not None:
            self.input_tokens = getattr(usage, "prompt_tokens", None)
            self.output_tokens = getattr(usage, "completion_tokens", None)
        choices: Any = getattr(chunk, "choices", None)
        if not choices:
            return []
        if reason := getattr(choices[0], "finish_reason", None):
            self.finish_reason = "length" if reason == "length" else "stop"
        delta: Any = getattr(choices[0], "delta", None)
        deltas: list[ChatDelta] = []
        for name in _THINKING_FIELDS:
            if thinking := getattr(delta, name, None):
                deltas.append(ThinkingDelta(text=thinking))
                break
        if text := getattr(delta, "content", None):
            deltas.append(TextDelta(text=text))
        self.has_text = self.has_text or bool(deltas)
        return deltas

    def end(self) -> StreamEnd:
        """The end of a stream that was closed in good order, with or without a reason. ServiceError if empty."""
        if self.finish_reason is None and not self.has_text:
            raise unreadable()
        return StreamEnd(
            finish_reason=self.finish_reason or "stop",
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


def _vendor_message(error: openai.APIError) -> str:
    if isinstance(error.body, dict) and isinstance(error.body.get("message"), str):
        return str(error.body["message"])
    return error.message


def _error_in_stream(error: openai.APIError, secrets: tuple[str, ...]) -> DocMindError:
    """An error event has no status. Some servers put it into `code`; else it may pass."""
    code = str(error.code or "")
    if code.isdigit() and 400 <= int(code) < 600:
        return from_status(int(code), message=_vendor_message(error), secrets=secrets)
    return ServiceError(_("The model service broke off with an error."))


async def _close_client(client: openai.AsyncOpenAI) -> None:
    await client.close()
