"""The two remote chat providers over their stand-ins, so that one set of tests covers both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Literal

import pytest

from apps.aiconfig.providers.dashscope import DashScopeChat
from apps.aiconfig.providers.openai_compatible import OpenAICompatibleChat
from apps.aiconfig.providers.types import (
    ChatDelta,
    ChatMessage,
    ChatModel,
    ChatRequest,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
)
from tests.standins.dashscope import DashScopeStandIn
from tests.standins.openai import OpenAIStandIn

API_KEY = "sk-stand-in-0123456789abcdef"


@dataclass(kw_only=True)
class Pauses:
    """A sleep that takes no time and remembers what it was asked for."""

    asked_s: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.asked_s.append(seconds)


@dataclass(frozen=True, kw_only=True)
class RemoteChat:
    model: DashScopeChat | OpenAICompatibleChat
    server: DashScopeStandIn | OpenAIStandIn
    pauses: Pauses


@pytest.fixture
def openai_server() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn(api_key=API_KEY) as server:
        yield server


@pytest.fixture
def dashscope_server() -> Iterator[DashScopeStandIn]:
    with DashScopeStandIn(api_key=API_KEY) as server:
        yield server


@pytest.fixture(params=["dashscope", "openai"])
async def remote(request: pytest.FixtureRequest) -> AsyncIterator[RemoteChat]:
    kind: Literal["dashscope", "openai"] = request.param
    pauses = Pauses()
    model: DashScopeChat | OpenAICompatibleChat
    server: DashScopeStandIn | OpenAIStandIn = request.getfixturevalue(f"{kind}_server")
    if kind == "dashscope":
        model = DashScopeChat(api_key=API_KEY, base_url=server.base_url, sleep=pauses)
    else:
        model = OpenAICompatibleChat(api_key=API_KEY, base_url=server.base_url, sleep=pauses)
    yield RemoteChat(model=model, server=server, pauses=pauses)
    await model.aclose()


def ask(question: str = "端口是多少？", *, timeout_s: float = 5.0, temperature: float = 0.3) -> ChatRequest:
    messages = (
        ChatMessage(role="system", content="Answer from the passages.\n\n[1] 默认端口是 8000。\n\n[2] 无关。"),
        ChatMessage(role="user", content=question),
    )
    return ChatRequest(
        model="qwen-plus", messages=messages, question=question, timeout_s=timeout_s, temperature=temperature
    )


async def collect(model: ChatModel, request: ChatRequest) -> list[ChatDelta]:
    return [delta async for delta in model.stream(request)]


def text_of(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def thinking_of(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))


def end_of(deltas: list[ChatDelta]) -> StreamEnd:
    """The last delta, which must be the only end."""
    assert [isinstance(delta, StreamEnd) for delta in deltas].count(True) == 1
    last = deltas[-1]
    assert isinstance(last, StreamEnd)
    return last
