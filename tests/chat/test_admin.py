from __future__ import annotations

import pytest
from django.test import Client

from apps.chat import services
from apps.chat.models import McpTool
from apps.kb.access import resolve_scope
from apps.rbac.models import User
from tests.chat.support import QUESTION
from tests.factories import UserFactory


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(UserFactory(roles=("SUPER_ADMIN",)))
    return client


def test_conversations_and_messages_can_be_looked_at_but_not_edited(admin: Client, user: User) -> None:
    turn = services.begin_turn(user, scope=resolve_scope(user), question=QUESTION, process_id="test:1")
    for path in ("conversation/", f"conversation/{turn.conversation_id}/change/", "message/?q=server"):
        response = admin.get(f"/admin/chat/{path}")
        assert response.status_code == 200
    shown = admin.get(f"/admin/chat/message/{turn.message_id}/change/")
    assert shown.status_code == 200
    assert b'name="content"' not in shown.content
    assert admin.get("/admin/chat/message/add/").status_code == 403
    assert admin.post(f"/admin/chat/message/{turn.message_id}/change/", {"content": "forged"}).status_code == 403


def test_tools_can_be_switched_off(admin: Client) -> None:
    tool = McpTool.objects.create(name="doc_search")
    response = admin.post(f"/admin/chat/mcptool/{tool.pk}/change/", {"name": "doc_search"})
    assert response.status_code == 302
    tool.refresh_from_db()
    assert not tool.enabled


def test_a_user_has_no_business_there(user: User) -> None:
    client = Client()
    client.force_login(user)
    assert client.get("/admin/chat/message/").status_code == 302
