from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.chat import services
from apps.chat.models import Conversation, Message
from apps.chat.recorder import MessageState, record_final
from apps.kb.access import resolve_scope
from apps.kb.models import KnowledgeBase
from apps.rbac.models import User
from tests.chat.support import QUESTION
from tests.factories import KnowledgeBaseFactory, UserFactory

BASE = "/api/chat/conversations/"


@pytest.fixture
def client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def conversation(user: User) -> Conversation:
    return services.create_conversation(user, scope=resolve_scope(user), title="Ports")


def source(index: int, kb_id: int | None, *, kind: str = "kb") -> dict[str, object]:
    return {
        "index": index,
        "id": index,
        "name": f"secret-{index}.md",
        "page": None,
        "snippet": f"secret text {index}",
        "kind": kind,
        "headingPath": "Secrets",
        "documentId": 1,
        "knowledgeBaseId": kb_id,
        "start": 0,
        "end": 5,
        "url": "",
    }


def answered(user: User, *sources: dict[str, object], **fields: object) -> Message:
    turn = services.begin_turn(user, scope=resolve_scope(user), question=QUESTION, process_id="test:1")
    citations = [{"index": item["index"], "documentId": 1, "name": item["name"]} for item in sources]
    values = {"status": "done", "content": "端口是 8080。[1][2]", "sources": list(sources), "citations": citations}
    record_final(turn.message_id, MessageState(**{**values, **fields}))  # type: ignore[arg-type]
    return Message.objects.get(pk=turn.message_id)


def test_it_creates_lists_renames_and_deletes(client: Client, kb: KnowledgeBase) -> None:
    made = client.post(BASE, {"title": " My\n title ", "kb_ids": [kb.pk]}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["title"] == "My title"
    assert made.json()["kb_ids"] == [kb.pk]
    one = f"{BASE}{made.json()['id']}/"
    assert [row["id"] for row in client.get(BASE).json()["results"]] == [made.json()["id"]]
    renamed = client.patch(one, {"title": "Better"}, content_type="application/json")
    assert (renamed.status_code, renamed.json()["title"], renamed.json()["kb_ids"]) == (200, "Better", [kb.pk])
    cleared = client.patch(one, {"kb_ids": []}, content_type="application/json")
    assert cleared.json()["kb_ids"] == []
    assert client.delete(one).status_code == 204
    assert client.get(one).status_code == 404


def test_it_lists_the_latest_active_first(client: Client, user: User) -> None:
    older = answered(user).conversation
    newer = answered(user).conversation
    services.begin_turn(user, scope=resolve_scope(user), question=QUESTION, process_id="x", conversation_id=older.pk)
    rows = client.get(BASE).json()["results"]
    assert [row["id"] for row in rows] == [older.pk, newer.pk]
    assert [row["message_count"] for row in rows] == [4, 2]


def test_conversations_of_others_do_not_exist(client: Client, outsider: User) -> None:
    theirs = answered(outsider)
    one = f"{BASE}{theirs.conversation_id}/"
    assert client.get(BASE).json()["results"] == []
    assert client.get(one).status_code == 404
    assert client.get(f"{one}messages/").status_code == 404
    assert client.patch(one, {"title": "Mine"}, content_type="application/json").status_code == 404
    assert client.delete(one).status_code == 404
    feedback = client.post(f"/api/chat/messages/{theirs.pk}/feedback/", {"value": 1}, content_type="application/json")
    assert feedback.status_code == 404
    assert Conversation.objects.filter(pk=theirs.conversation_id).exists()


@pytest.mark.parametrize("number", ["0", "99999999999999999999999999"])
def test_it_answers_404_for_numbers_that_cannot_be(client: Client, number: str) -> None:
    assert client.get(f"{BASE}{number}/").status_code == 404


def test_it_does_not_choose_knowledge_bases_out_of_reach(client: Client, conversation: Conversation) -> None:
    hidden = KnowledgeBaseFactory(visibility="private")
    assert client.post(BASE, {"kb_ids": [hidden.pk]}, content_type="application/json").status_code == 404
    changed = client.patch(f"{BASE}{conversation.pk}/", {"kb_ids": [hidden.pk]}, content_type="application/json")
    assert changed.status_code == 404


def test_it_shows_messages_oldest_first_with_their_evidence(client: Client, user: User, kb: KnowledgeBase) -> None:
    message = answered(user, source(1, kb.pk), source(2, kb.pk))
    page = client.get(f"{BASE}{message.conversation_id}/messages/").json()
    assert page["count"] == 2
    question, answer = page["results"]
    assert (question["role"], question["content"], question["html"]) == ("user", QUESTION, "")
    assert answer["reply_to"] == question["id"]
    assert answer["run_id"] == question["run_id"]
    assert 'href="#source-1"' in answer["html"]
    assert [item["name"] for item in answer["sources"]] == ["secret-1.md", "secret-2.md"]
    assert [item["index"] for item in answer["citations"]] == [1, 2]


def test_it_hides_sources_that_may_no_longer_be_read(client: Client, user: User) -> None:
    open_kb, closed_kb = KnowledgeBaseFactory(), KnowledgeBaseFactory()
    message = answered(user, source(1, closed_kb.pk), source(2, open_kb.pk), source(3, None, kind="web"))
    KnowledgeBase.objects.filter(pk=closed_kb.pk).update(visibility="private")
    response = client.get(f"{BASE}{message.conversation_id}/messages/")
    answer = response.json()["results"][1]
    assert [item["hidden"] for item in answer["sources"]] == [True, False, False]
    assert [item["index"] for item in answer["sources"]] == [1, 2, 3]
    assert [item["index"] for item in answer["citations"]] == [2, 3]
    assert b"secret-1" not in response.content
    assert b"secret text 1" not in response.content


def test_it_hides_sources_of_deleted_knowledge_bases(client: Client, user: User, kb: KnowledgeBase) -> None:
    message = answered(user, source(1, kb.pk))
    kb.delete()
    answer = client.get(f"{BASE}{message.conversation_id}/messages/").json()["results"][1]
    assert answer["sources"][0]["hidden"]


def test_it_sanitizes_what_a_model_wrote(client: Client, user: User) -> None:
    message = answered(user, content="<script>alert(1)</script> ![x](http://evil/)")
    html = client.get(f"{BASE}{message.conversation_id}/messages/").json()["results"][1]["html"]
    assert "<script" not in html
    assert "<img" not in html


def test_its_queries_do_not_grow_with_the_messages(
    client: Client, user: User, kb: KnowledgeBase, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    message = answered(user, source(1, kb.pk))
    for _ in range(10):
        services.begin_turn(
            user,
            scope=resolve_scope(user),
            question=QUESTION,
            process_id="x",
            conversation_id=message.conversation_id,
        )
    with django_assert_max_num_queries(11):
        page = client.get(f"{BASE}{message.conversation_id}/messages/?page_size=100")
    assert len(page.json()["results"]) == 22


def test_it_takes_feedback_and_takes_it_back(client: Client, user: User) -> None:
    message = answered(user)
    url = f"/api/chat/messages/{message.pk}/feedback/"
    given = client.post(url, {"value": -1, "reason": "端口不对"}, content_type="application/json")
    assert (given.status_code, given.json()) == (200, {"value": -1, "reason": "端口不对"})
    message.refresh_from_db()
    assert (message.feedback, message.feedback_reason) == (-1, "端口不对")
    client.post(url, {"value": 0}, content_type="application/json")
    message.refresh_from_db()
    assert (message.feedback, message.feedback_reason) == (None, "")


@pytest.mark.parametrize("body", [{}, {"value": 2}, {"value": "x"}, {"value": 1, "reason": "x" * 501}])
def test_it_refuses_feedback_that_is_none(client: Client, user: User, body: dict[str, object]) -> None:
    response = client.post(f"/api/chat/messages/{answered(user).pk}/feedback/", body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"


def test_questions_take_no_feedback(client: Client, user: User) -> None:
    question = answered(user).reply_to
    assert question is not None
    response = client.post(f"/api/chat/messages/{question.pk}/feedback/", {"value": 1}, content_type="application/json")
    assert response.status_code == 404


@pytest.mark.django_db
def test_it_needs_the_rights() -> None:
    client = Client()
    assert client.get(BASE).status_code == 401
    client.force_login(UserFactory(roles=()))
    assert client.get(BASE).status_code == 403
    assert client.post(BASE, {}, content_type="application/json").status_code == 403


@pytest.mark.django_db
def test_the_streams_stand_in_the_openapi_schema() -> None:
    from drf_spectacular.generators import SchemaGenerator

    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    assert "text/event-stream" in schema["paths"]["/api/chat/ask/"]["post"]["responses"]["200"]["content"]
    assert "/api/chat/runs/{run_id}/events/" in schema["paths"]
    assert "/api/chat/runs/{run_id}/stop/" in schema["paths"]
    assert "/api/chat/conversations/" in schema["paths"]
