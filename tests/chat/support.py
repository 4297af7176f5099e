"""What the tests of answering share: passages, a scripted search, a model that is paced by hand, and an SSE reader."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.test import AsyncClient

from apps.aiconfig.providers.types import ChatDelta, ChatRequest, StreamEnd, TextDelta
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.chat.pipeline.types import AskRequest, HistoryMessage, PipelineDeps
from apps.kb.retrieval.types import Degradation, RetrievalResult, RetrievedChunk, SearchRequest, StageTiming
from apps.rbac.scope import AccessScope
from docmind.text import segment
from tests.fakes import ScriptedChatModel

QUESTION = "默认端口 server.port 是多少？"
ANSWER = ["默认端口是 8080", "。[1]", " 可以在 `server.port` 中修改。[2]"]


def passage(number: int, content: str, *, score: float = 0.9, kb_id: int = 1, **fields: Any) -> RetrievedChunk:
    values: dict[str, Any] = {
        "chunk_id": number,
        "kind": "kb",
        "content": content,
        "child_content": content,
        "child_terms": tuple(segment(content)),
        "knowledge_base_id": kb_id,
        "document_id": 100 + number,
        "document_name": f"manual-{number}.md",
        "heading_path": "配置 > 端口",
        "page": None,
        "start_char": 0,
        "end_char": len(content),
        "child_start": 10 * number,
        "child_end": 10 * number + len(content),
        "lang": "zh",
        "content_type": "general",
        "rerank_score": score,
    }
    return RetrievedChunk(**{**values, **fields})


PASSAGES = (
    passage(1, "server.port 的默认端口是 8080，多少都可以改。"),
    passage(2, "在 application.yml 的 server.port 中修改端口。", score=0.7),
)


def found(*chunks: RetrievedChunk, degraded: tuple[Degradation, ...] = ()) -> RetrievalResult:
    return RetrievalResult(
        chunks=chunks,
        candidates=len(chunks),
        rerank_model="term-coverage",
        degraded=degraded,
        timings=(StageTiming(stage="keyword", ms=2.0), StageTiming(stage="rerank", ms=1.0)),
    )


@dataclass
class ScriptedSearch:
    """Returns a result, or raises; remembers what it was asked."""

    outcome: RetrievalResult | Exception
    requests: list[SearchRequest] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def __call__(self, request: SearchRequest, *, config: ConfigSnapshot) -> RetrievalResult:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class PacedChatModel:
    """Yields one piece each time `allow` is called; knows whether its stream was closed."""

    name = "paced"
    is_generative = True

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = pieces
        self.permits = asyncio.Semaphore(0)
        self.opened = asyncio.Event()
        self.closed = asyncio.Event()

    def allow(self, count: int = 1) -> None:
        for _ in range(count):
            self.permits.release()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        self.opened.set()
        try:
            for piece in self.pieces:
                await self.permits.acquire()
                yield TextDelta(text=piece)
            await self.permits.acquire()
            yield StreamEnd(input_tokens=7, output_tokens=len(self.pieces))
        finally:
            self.closed.set()


def deps_of(chat: Any = None, search: Any = None) -> PipelineDeps:
    return PipelineDeps(chat=chat or ScriptedChatModel(ANSWER), search=search or ScriptedSearch(found(*PASSAGES)))


def ask_request(question: str = QUESTION, *, message_id: int = 2, **fields: Any) -> AskRequest:
    values: dict[str, Any] = {
        "run_id": uuid.uuid4(),
        "conversation_id": 1,
        "message_id": message_id,
        "question": question,
        "scope": AccessScope(
            user_id=1,
            permissions=frozenset({"kb:read", "chat:ask"}),
            readable_kb_ids=frozenset({1}),
            manageable_kb_ids=frozenset(),
        ),
        "config": ConfigSnapshot(),
    }
    return AskRequest(**{**values, **fields})


def history(*contents: str) -> tuple[HistoryMessage, ...]:
    return tuple(
        HistoryMessage(role="user" if number % 2 == 0 else "assistant", content=content)
        for number, content in enumerate(contents)
    )


class BearerClient(AsyncClient):
    """Django's async client with a token: the headers it is made with do not reach its requests."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token

    def generic(  # type: ignore[override]
        self, *args: Any, headers: dict[str, str] | None = None, **kwargs: Any
    ) -> Any:
        return super().generic(*args, headers={"Authorization": f"Bearer {self.token}", **(headers or {})}, **kwargs)


@dataclass(frozen=True)
class Received:
    """One server-sent event as a client sees it."""

    id: int
    name: str
    data: dict[str, Any]


def parse_sse(raw: bytes) -> list[Received]:
    """The complete events of a stream; comments are left out."""
    events = []
    for block in raw.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            events.append(Received(id=int(fields["id"]), name=fields["event"], data=json.loads(fields["data"])))
    return events


async def read_all(response: Any) -> bytes:
    return b"".join([part async for part in response])


async def read_until(stream: AsyncIterator[bytes], name: str, count: int = 1) -> bytes:
    """Read on until `count` events of that name have come."""
    raw = b""
    async for part in stream:
        raw += part
        if sum(event.name == name for event in parse_sse(raw)) >= count:
            break
    return raw
