"""Asking, listening and stopping over HTTP, with a real database and tasks that outlive their requests."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from apps.chat.models import Conversation, Message
from apps.chat.runs import RunManager
from apps.kb.models import Document, KnowledgeBase
from apps.rbac import tokens
from apps.rbac.models import User
from docmind.errors import TransientError
from tests.chat.conftest import Wiring
from tests.chat.support import (
    ANSWER,
    QUESTION,
    BearerClient,
    PacedChatModel,
    ScriptedSearch,
    found,
    parse_sse,
    passage,
    read_all,
    read_until,
)
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.fakes import ScriptedChatModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("manager")]

STAGES = ["understanding", "routing", "retrieval", "rerank", "grader"]


def client_of(user: User, *, kb_ids: list[int] | None = None) -> BearerClient:
    codes = sorted(user.permission_codes())
    _, raw = tokens.create_api_key(user, name="test", permission_codes=codes, knowledge_base_ids=kb_ids)
    return BearerClient(raw)


async def ask(client: AsyncClient, **body: Any) -> Any:
    return await client.post("/api/chat/ask/", {"question": QUESTION, **body}, content_type="application/json")


async def settled(manager: RunManager) -> None:
    while manager.running:  # noqa: ASYNC110
        await asyncio.sleep(0.002)


@pytest.fixture
def client(user: User) -> BearerClient:
    return client_of(user)


async def test_it_streams_an_answer_and_writes_the_row(client: AsyncClient, wiring: Wiring, user: User) -> None:
    wiring.use(search=ScriptedSearch(found(passage(1, "端口是 8080。"), passage(2, "server.port"))))
    response = await ask(client)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/event-stream")
    assert response["X-Accel-Buffering"] == "no"
    events = parse_sse(await read_all(response))
    assert [event.name for event in events] == [*STAGES, "start", "token", "token", "token", "done"]
    assert [event.id for event in events] == list(range(1, 11))
    assert {event.data["runId"] for event in events} == {response["X-Run-Id"]}
    done = events[-1].data
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert row.status == "done"
    assert row.content == "".join(event.data["text"] for event in events if event.name == "token")
    assert (row.sources, row.citations) == (done["sources"], done["citations"])
    assert (row.agent_trace, row.retrieval_log) == (done["agentTrace"], done["retrievalLog"])
    assert row.confidence_score == done["confidenceScore"]
    assert row.conversation_id == done["conversationId"] == int(response["X-Conversation-Id"])
    conversation = await Conversation.objects.aget(pk=row.conversation_id)
    assert (conversation.user_id, conversation.title, conversation.message_count) == (user.pk, QUESTION, 2)


async def test_it_remembers_the_conversation(client: AsyncClient, wiring: Wiring) -> None:
    first = await ask(client)
    await read_all(first)
    chat = ScriptedChatModel(["就是 8080 端口。[1]"])
    wiring.use(chat)
    second = await ask(client, question="再说一遍默认端口？", conversation_id=int(first["X-Conversation-Id"]))
    await read_all(second)
    assert second["X-Conversation-Id"] == first["X-Conversation-Id"]
    earlier = chat.requests[0].messages[1:-1]
    assert [(message.role, message.content) for message in earlier] == [
        ("user", QUESTION),
        ("assistant", "默认端口是 8080。 可以在 `server.port` 中修改。"),
    ]


async def test_it_takes_two_questions_of_one_conversation_at_once(client: AsyncClient, wiring: Wiring) -> None:
    slow = PacedChatModel(ANSWER)
    wiring.use(slow)
    first = await ask(client)
    await slow.opened.wait()
    wiring.use()
    second = await ask(client, conversation_id=int(first["X-Conversation-Id"]))
    assert parse_sse(await read_all(second))[-1].name == "done"
    slow.allow(9)
    assert parse_sse(await read_all(first))[-1].data["outcome"] == "done"


async def test_it_answers_from_the_chosen_knowledge_bases_alone(
    client: AsyncClient, wiring: Wiring, kb: KnowledgeBase
) -> None:
    other = await sync_to_async(KnowledgeBaseFactory)()
    search = ScriptedSearch(found())
    wiring.use(search=search)
    response = await ask(client, kb_ids=[kb.pk])
    await read_all(response)
    await read_all(await ask(client, conversation_id=int(response["X-Conversation-Id"])))
    await read_all(await ask(client))
    scopes = [request.scope.readable_kb_ids for request in search.requests]
    assert scopes == [{kb.pk}, {kb.pk}, {kb.pk, other.pk}]


async def test_it_resumes_with_exactly_the_rest(client: AsyncClient, wiring: Wiring, manager: RunManager) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    chat.allow(1)
    stream = aiter(response)
    first = parse_sse(await read_until(stream, "token"))
    await stream.aclose()
    chat.allow(9)
    url = f"/api/chat/runs/{response['X-Run-Id']}/events/"
    rest = parse_sse(await read_all(await client.get(url, headers={"Last-Event-ID": str(first[-1].id)})))
    assert [event.id for event in (*first, *rest)] == list(range(1, 11))
    assert rest[-1].name == "done"
    again = parse_sse(await read_all(await client.get(f"{url}?last_event_id=0")))
    assert again == [*first, *rest]


async def test_it_can_be_resumed_and_stopped_before_start(client: AsyncClient, wiring: Wiring) -> None:
    gate = asyncio.Event()
    wiring.use(search=ScriptedSearch(found(), gate=gate))
    response = await ask(client)
    url = f"/api/chat/runs/{response['X-Run-Id']}"
    listening = await client.get(f"{url}/events/")
    assert listening.status_code == 200
    stopped = await client.post(f"{url}/stop/")
    assert stopped.status_code == 202
    events = parse_sse(await read_all(listening))
    assert [event.name for event in events] == ["understanding", "routing", "done"]
    assert events[-1].data["outcome"] == "stopped"
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.content) == ("stopped", "")


async def test_it_can_be_stopped_the_moment_it_was_asked(client: AsyncClient, wiring: Wiring) -> None:
    response = await ask(client)
    assert (await client.post(f"/api/chat/runs/{response['X-Run-Id']}/stop/")).status_code == 202
    assert parse_sse(await read_all(response))[-1].name == "done"


async def test_it_keeps_the_text_of_a_stopped_answer(client: AsyncClient, wiring: Wiring) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    chat.allow(2)
    stream = aiter(response)
    await read_until(stream, "token", 2)
    await client.post(f"/api/chat/runs/{response['X-Run-Id']}/stop/")
    rest = parse_sse(b"".join([part async for part in stream]))
    assert [event.name for event in rest] == ["done"]
    assert chat.closed.is_set()
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.content) == ("stopped", ANSWER[0] + ANSWER[1])
    assert row.citations == rest[0].data["citations"] != []


async def test_it_cancels_the_run_of_a_client_that_does_not_come_back(
    client: AsyncClient, wiring: Wiring, manager: RunManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.aiconfig.snapshot import ConfigSnapshot
    from apps.chat.api import stream_views

    monkeypatch.setattr(stream_views, "current_config", lambda: ConfigSnapshot(sse_disconnect_grace_s=0.05))
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    chat.allow(1)
    stream = aiter(response)
    await read_until(stream, "token")
    await stream.aclose()
    await settled(manager)
    assert chat.closed.is_set()
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.content) == ("stopped", ANSWER[0])


async def test_a_run_with_a_listener_is_not_cancelled(
    client: AsyncClient, wiring: Wiring, manager: RunManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.aiconfig.snapshot import ConfigSnapshot
    from apps.chat.api import stream_views

    monkeypatch.setattr(stream_views, "current_config", lambda: ConfigSnapshot(sse_disconnect_grace_s=0.0))
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    reading = asyncio.create_task(read_all(response))
    for _ in range(4):
        await asyncio.sleep(0.02)
        chat.allow(1)
    assert parse_sse(await reading)[-1].data["outcome"] == "done"


async def test_it_writes_the_text_so_far_while_it_streams(
    client: AsyncClient, wiring: Wiring, manager: RunManager
) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    chat.allow(1)
    stream = aiter(response)
    await read_until(stream, "token")
    rows = Message.objects.filter(run_id=response["X-Run-Id"], role="assistant")
    async with asyncio.timeout(5):
        while (await rows.aget()).content != ANSWER[0]:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert (await rows.aget()).status == "streaming"
    chat.allow(9)
    assert [part async for part in stream]


async def test_shutdown_ends_runs_as_stopped(client: AsyncClient, wiring: Wiring, manager: RunManager) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    chat.allow(1)
    await read_until(aiter(response), "token")
    await manager.shutdown()
    assert chat.closed.is_set()
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.content) == ("stopped", ANSWER[0])


async def test_a_failed_model_is_an_error_event_and_a_failed_row(client: AsyncClient, wiring: Wiring) -> None:
    wiring.use(ScriptedChatModel([TransientError("The model is busy.", code="rate_limited")]))
    response = await ask(client)
    last = parse_sse(await read_all(response))[-1]
    assert (last.name, last.data["code"], last.data["retryable"]) == ("error", "rate_limited", True)
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert (row.status, row.error_code) == ("failed", "rate_limited")
    assert [entry["event"] for entry in row.agent_trace] == STAGES


async def test_a_crash_is_an_error_event_without_its_innards(client: AsyncClient, wiring: Wiring) -> None:
    wiring.use(search=ScriptedSearch(RuntimeError("secret detail")))
    response = await ask(client)
    raw = await read_all(response)
    assert parse_sse(raw)[-1].data["code"] == "internal_error"
    assert b"secret detail" not in raw
    row = await Message.objects.aget(run_id=response["X-Run-Id"], role="assistant")
    assert row.status == "failed"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"question": "   "}, 400, "invalid"),
        ({"question": "\x00\ud800"}, 400, "invalid"),
        ({"question": "长" * 8001}, 400, "invalid"),
        ({"question": "长" * 100_000}, 400, "invalid"),
        ({"question": None}, 400, "invalid"),
        ({"question": ["x"]}, 400, "invalid"),
        ({"kb_ids": "x"}, 400, "invalid"),
        ({"conversation_id": 999_999}, 404, "not_found"),
        ({"kb_ids": [999_999]}, 404, "not_found"),
        ({"document_ids": [999_999]}, 404, "not_found"),
    ],
)
async def test_it_refuses_bad_questions_and_writes_nothing(
    client: AsyncClient, wiring: Wiring, body: dict[str, Any], status: int, code: str
) -> None:
    response = await client.post(
        "/api/chat/ask/", json.dumps({"question": QUESTION, **body}), content_type="application/json"
    )
    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert not await Message.objects.aexists()
    assert not await Conversation.objects.aexists()


@pytest.mark.parametrize("raw", ["{", "[1]", "[" * 100_000, '"x"', "\xff"])
async def test_it_refuses_what_is_not_a_json_object(client: AsyncClient, raw: str) -> None:
    response = await client.post("/api/chat/ask/", raw.encode("latin-1"), content_type="application/json")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "parse_error"


async def test_it_refuses_a_body_that_is_too_large(client: AsyncClient) -> None:
    body = json.dumps({"question": "x" * 3_000_000})
    response = await client.post("/api/chat/ask/", body, content_type="application/json")
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"


async def test_its_messages_follow_the_readers_language(client: AsyncClient) -> None:
    response = await client.post(
        "/api/chat/ask/", {"question": " "}, content_type="application/json", headers={"Accept-Language": "en"}
    )
    assert response.json()["error"]["message"] == "Please write a question."


async def test_it_asks_who_is_there() -> None:
    for response in (
        await ask(AsyncClient()),
        await AsyncClient().get(f"/api/chat/runs/{uuid.uuid4()}/events/"),
        await AsyncClient().post(f"/api/chat/runs/{uuid.uuid4()}/stop/"),
    ):
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "not_authenticated"
        assert "Bearer" in response["WWW-Authenticate"]


async def test_it_needs_the_right_to_ask(wiring: Wiring) -> None:
    nobody = await sync_to_async(UserFactory)(roles=())
    response = await ask(await sync_to_async(client_of)(nobody))
    assert response.status_code == 403


async def test_pages_ask_with_their_session_and_a_csrf_token(user: User, wiring: Wiring) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(user)
    assert (await ask(client)).status_code == 403
    token = "a" * 32
    client.cookies["csrftoken"] = token
    response = await client.post(
        "/api/chat/ask/", {"question": QUESTION}, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert response.status_code == 200
    assert parse_sse(await read_all(response))[-1].name == "done"


async def test_it_throttles(client: AsyncClient, wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    from rest_framework.throttling import ScopedRateThrottle

    monkeypatch.setattr(ScopedRateThrottle, "THROTTLE_RATES", {"ask": "2/min"})
    for _ in range(2):
        await read_all(await ask(client))
    response = await ask(client)
    assert response.status_code == 429
    assert response.json()["error"]["code"] == "throttled"
    assert int(response["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("method", "path"), [("get", "ask/"), ("post", "runs/{run}/events/"), ("get", "runs/{run}/stop/")]
)
async def test_it_refuses_other_methods(client: AsyncClient, method: str, path: str) -> None:
    response = await getattr(client, method)("/api/chat/" + path.format(run=uuid.uuid4()))
    assert response.status_code == 405


async def test_it_refuses_an_event_id_that_is_none(client: AsyncClient, wiring: Wiring) -> None:
    response = await ask(client)
    await read_all(response)
    url = f"/api/chat/runs/{response['X-Run-Id']}/events/"
    for given in ("x", "-1", "1.5", "９", "9" * 30):
        assert (await client.get(url, headers={"Last-Event-ID": given.encode().decode("latin-1")})).status_code == 400


async def test_it_tells_when_the_events_are_no_longer_kept(
    client: AsyncClient, wiring: Wiring, manager: RunManager
) -> None:
    response = await ask(client)
    await read_all(response)
    manager.bus._runs.clear()  # type: ignore[attr-defined]
    gone = await client.get(f"/api/chat/runs/{response['X-Run-Id']}/events/")
    assert gone.status_code == 410
    assert gone.json()["error"]["code"] == "run_expired"
    assert gone.json()["error"]["details"]["status"] == "done"


async def test_runs_of_others_do_not_exist(client: AsyncClient, outsider: User, wiring: Wiring) -> None:
    chat = PacedChatModel(ANSWER)
    wiring.use(chat)
    response = await ask(client)
    other = await sync_to_async(client_of)(outsider)
    url = f"/api/chat/runs/{response['X-Run-Id']}"
    assert (await other.get(f"{url}/events/")).status_code == 404
    assert (await other.post(f"{url}/stop/")).status_code == 404
    asked = await ask(other, conversation_id=int(response["X-Conversation-Id"]))
    assert asked.status_code == 404
    chat.allow(9)
    assert parse_sse(await read_all(response))[-1].data["outcome"] == "done"


async def test_knowledge_bases_and_documents_out_of_reach_do_not_exist(client: AsyncClient, wiring: Wiring) -> None:
    hidden = await sync_to_async(KnowledgeBaseFactory)(visibility="private")
    open_kb = await sync_to_async(KnowledgeBaseFactory)()
    document = await Document.objects.acreate(knowledge_base=hidden, source_name="a.md")
    elsewhere = await Document.objects.acreate(knowledge_base=open_kb, source_name="b.md")
    assert (await ask(client, kb_ids=[hidden.pk])).status_code == 404
    assert (await ask(client, document_ids=[document.pk])).status_code == 404
    search = ScriptedSearch(found())
    wiring.use(search=search)
    await read_all(await ask(client, document_ids=[elsewhere.pk]))
    assert search.requests[0].document_ids == frozenset({elsewhere.pk})


async def test_an_api_key_limited_to_a_knowledge_base_stays_within_it(user: User, wiring: Wiring) -> None:
    inside, outside = await sync_to_async(KnowledgeBaseFactory)(), await sync_to_async(KnowledgeBaseFactory)()
    client = await sync_to_async(client_of)(user, kb_ids=[inside.pk])
    search = ScriptedSearch(found())
    wiring.use(search=search)
    await read_all(await ask(client))
    assert search.requests[0].scope.readable_kb_ids == {inside.pk}
    assert (await ask(client, kb_ids=[outside.pk])).status_code == 404
