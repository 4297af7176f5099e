"""From question to cited answer over real chunks, real keyword search and the provider without a model."""

from __future__ import annotations

from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from apps.aiconfig.providers.extractive import ExtractiveChat
from apps.chat.api import stream_views
from apps.chat.pipeline.types import PipelineDeps
from apps.kb.models import Chunk, Document
from apps.kb.retrieval.search import search
from apps.rbac.models import User
from tests.chat.support import Received, parse_sse, read_all
from tests.factories import KnowledgeBaseFactory
from tests.kb.retrieval.corpus import add_chunk, add_document
from tests.kb.retrieval.memory_vectors import MemoryVectors

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("manager")]

TEXT = "## 端口\n\n服务默认监听 8080 端口，用 `server.port` 修改。\n\n## 日志\n\n日志写在 logs 目录中。\n"


@pytest.fixture(autouse=True)
def _without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    deps = PipelineDeps(chat=ExtractiveChat(), search=partial(search, embedder=None, vectors=MemoryVectors()))
    monkeypatch.setattr(stream_views, "current_deps", lambda: deps)


def index_manual(visibility: str = "public") -> tuple[Document, Chunk]:
    document = add_document(KnowledgeBaseFactory(visibility=visibility), "manual.md")
    port, log = "服务默认监听 8080 端口，用 `server.port` 修改。", "日志写在 logs 目录中。"
    chunk = add_chunk(document, port, heading_path="端口", start=TEXT.index(port))
    add_chunk(document, log, heading_path="日志", start=TEXT.index(log))
    return document, chunk


async def ask(user: User, question: str) -> list[Received]:
    client = AsyncClient()
    await client.aforce_login(user)
    response = await client.post("/api/chat/ask/", {"question": question}, content_type="application/json")
    assert response.status_code == 200
    return parse_sse(await read_all(response))


@pytest.mark.parametrize("question", ["端口", "默认端口是多少？", "server.port 怎么用"])
async def test_its_citation_leads_to_the_passage_that_holds_the_answer(user: User, question: str) -> None:
    document, chunk = await sync_to_async(index_manual)()
    events = await ask(user, question)
    done = events[-1].data
    assert done["outcome"] == "done"
    assert "8080" in "".join(event.data["text"] for event in events if event.name == "token")
    citation = done["citations"][0]
    assert (citation["id"], citation["documentId"]) == (chunk.pk, document.pk)
    assert "8080" in TEXT[citation["start"] : citation["end"]]
    assert done["citationCoverage"] == 1.0
    assert done["notice"]
    retrieval = next(event.data for event in events if event.name == "retrieval")
    assert retrieval["degraded"], "without an embedder the search says that it is by keyword alone"


async def test_it_invents_nothing_where_the_documents_are_silent(user: User) -> None:
    await sync_to_async(index_manual)()
    done = (await ask(user, "火星食堂几点开门"))[-1].data
    assert done["isFallback"]
    assert done["citations"] == []


async def test_a_document_out_of_reach_takes_no_part(user: User) -> None:
    await sync_to_async(index_manual)("private")
    events = await ask(user, "默认端口是多少？")
    assert events[-1].data["isFallback"]
    assert "8080" not in "".join(str(event.data) for event in events)
