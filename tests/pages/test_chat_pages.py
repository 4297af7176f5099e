"""The chat page and its fragments: whose they are, and how a stored answer is shown."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from apps.chat.models import Conversation, Message
from apps.kb.models import KnowledgeBase
from apps.rbac.models import User
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


def answered(user: User, knowledge_base: KnowledgeBase | None = None, **fields: Any) -> Message:
    """A question of the user's with its answer, citing document 5 of the knowledge base."""
    kb_id = knowledge_base.pk if knowledge_base else 1
    conversation = Conversation.objects.create(user=user, title="Ports")
    run_id = uuid.uuid4()
    asked = Message.objects.create(conversation=conversation, role="user", content="Which <port>?", run_id=run_id)
    source = {
        "index": 1,
        "id": 9,
        "name": "manual.md",
        "page": 3,
        "snippet": "The **port** is `8080`.",
        "kind": "kb",
        "headingPath": "Setup > Ports",
        "documentId": 5,
        "knowledgeBaseId": kb_id,
        "start": 100,
        "end": 900,
        "url": "",
    }
    values: dict[str, Any] = {
        "content": "Port 8080 [1]. <script>alert(1)</script> Not there [7].",
        "sources": [source, {**source, "index": 2, "id": 10, "name": "other.md"}],
        "citations": [{"index": 1, "id": 9, "name": "manual.md", "page": 3, "documentId": 5, "start": 120, "end": 160}],
        "confidence_score": 0.72,
        "confidence_band": "MEDIUM",
        "citation_coverage": 0.8,
        "invalid_refs": 1,
        "model": "qwen-plus",
        "response_time_ms": 1200,
        "agent_trace": [{"event": "grader", "tier": "HIGH", "topScore": 0.9}],
    }
    return Message.objects.create(
        conversation=conversation, role="assistant", run_id=run_id, reply_to=asked, **{**values, **fields}
    )


def test_the_start_page_is_the_chat() -> None:
    response = signed_in(UserFactory()).get("/")
    assert response.status_code == 302
    assert response["Location"] == "/chat/"


def test_conversations_of_others_do_not_exist() -> None:
    message = answered(UserFactory())
    client = signed_in(UserFactory())
    assert client.get(f"/chat/{message.conversation_id}/").status_code == 404
    assert client.get(f"/chat/messages/{message.pk}/html/").status_code == 404
    assert "Ports" not in client.get("/chat/").content.decode()


def test_a_question_is_no_answer_fragment() -> None:
    user = UserFactory()
    message = answered(user)
    assert signed_in(user).get(f"/chat/messages/{message.reply_to_id}/html/").status_code == 404


def test_a_stored_answer_is_shown_with_citations_confidence_and_trace() -> None:
    user = UserFactory()
    message = answered(user, KnowledgeBaseFactory())
    page = signed_in(user).get(f"/chat/{message.conversation_id}/").content.decode()
    assert "Which &lt;port&gt;?" in page
    assert 'class="citation-ref" href="#source-1" data-index="1"' in page
    assert 'data-index="7"' not in page
    assert "<script>alert(1)" not in page
    assert "medium" in page
    assert "80 %" in page
    assert "/kb/documents/5/?start=120&amp;end=160#passage" in page
    assert "The port is 8080." in page
    assert "1 more passage was found but not cited" in page
    assert '"topScore": 0.9' in page


def test_the_fragment_is_what_a_reload_shows() -> None:
    user = UserFactory()
    message = answered(user, KnowledgeBaseFactory())
    client = signed_in(user)
    fragment = client.get(f"/chat/messages/{message.pk}/html/").content.decode()
    page = client.get(f"/chat/{message.conversation_id}/").content.decode()
    assert "".join(fragment.split()) in "".join(page.split())


def test_sources_that_may_no_longer_be_read_are_hidden() -> None:
    user = UserFactory()
    message = answered(user, KnowledgeBaseFactory(visibility="private"))
    page = signed_in(user).get(f"/chat/{message.conversation_id}/").content.decode()
    assert "manual.md" not in page
    assert "/kb/documents/5/" not in page
    assert "No longer available to you" in page


def test_an_address_from_the_web_is_a_link_only_when_it_is_one() -> None:
    user = UserFactory()
    web = {"index": 1, "id": None, "name": "w", "page": None, "snippet": "s", "kind": "web", "headingPath": ""}
    web |= {"documentId": None, "knowledgeBaseId": None, "start": 0, "end": 0, "url": "javascript:alert(1)"}
    message = answered(user, sources=[web], citations=[])
    page = signed_in(user).get(f"/chat/{message.conversation_id}/").content.decode()
    assert "javascript:" not in page


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "stopped"}, "Stopped."),
        ({"status": "failed", "error_code": "run_lost"}, "server was restarted"),
        ({"is_fallback": True}, "No evidence found"),
        ({"model": "none"}, "no model is configured"),
    ],
)
def test_the_state_of_an_answer_is_told(fields: dict[str, Any], expected: str) -> None:
    user = UserFactory()
    message = answered(user, KnowledgeBaseFactory(), **fields)
    assert expected in signed_in(user).get(f"/chat/messages/{message.pk}/html/").content.decode()


def test_a_long_conversation_is_shown_from_its_end() -> None:
    user = UserFactory()
    conversation = Conversation.objects.create(user=user, title="Long")
    Message.objects.bulk_create(
        Message(conversation=conversation, role="user", content=f"question {n}.", run_id=uuid.uuid4())
        for n in range(50)
    )
    client = signed_in(user)
    page = client.get(f"/chat/{conversation.pk}/")
    assert "question 49." in page.content.decode()
    assert "question 9." not in page.content.decode()
    earlier = client.get(f"/chat/{conversation.pk}/?before={page.context['earlier']}").content.decode()
    assert "question 9." in earlier
    assert "question 49." not in earlier


def test_a_conversation_asks_a_fixed_number_of_queries(django_assert_max_num_queries: object) -> None:
    user = UserFactory()
    message = answered(user, KnowledgeBaseFactory())
    for number in range(15):
        Message.objects.create(
            conversation=message.conversation, role="user", content=f"q{number}", run_id=uuid.uuid4()
        )
    client = signed_in(user)
    with django_assert_max_num_queries(16):  # type: ignore[operator]
        client.get(f"/chat/{message.conversation_id}/")


def test_knowledge_bases_that_may_not_be_read_cannot_be_chosen() -> None:
    KnowledgeBaseFactory(name="Visible one")
    KnowledgeBaseFactory(name="Hidden one", visibility="private")
    page = signed_in(UserFactory()).get("/chat/").content.decode()
    assert "Visible one" in page
    assert "Hidden one" not in page


def test_the_page_says_that_no_model_is_configured() -> None:
    assert "No model is configured" in signed_in(UserFactory()).get("/chat/").content.decode()
