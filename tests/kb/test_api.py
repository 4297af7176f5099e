"""The knowledge-base API: shapes, errors, and what each person may do."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from apps.kb.models import Document, KnowledgeBase
from apps.rbac import tokens
from apps.rbac.models import User
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {tokens.start_session(user).access}")
    return client


def upload(client: APIClient, kb_id: int, *files: tuple[str, bytes]) -> Any:
    payload = {"file": [SimpleUploadedFile(name, content) for name, content in files]}
    return client.post(f"/api/kb/knowledge-bases/{kb_id}/documents/", payload, format="multipart")


def assert_error(response: Any, status: int, code: str) -> None:
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message", "details"}
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["message"]


def test_it_creates_lists_changes_and_deletes_a_knowledge_base() -> None:
    client = client_of(UserFactory(roles=("KB_ADMIN",)))
    made = client.post("/api/kb/knowledge-bases/", {"name": "手册", "description": "内部"}, format="json")
    assert made.status_code == 201
    kb_id = made.json()["id"]
    assert made.json()["visibility"] == "public"
    assert made.json()["can_manage"] is True
    assert client.get("/api/kb/knowledge-bases/").json()["results"][0]["name"] == "手册"
    changed = client.patch(f"/api/kb/knowledge-bases/{kb_id}/", {"visibility": "private"}, format="json")
    assert changed.json()["visibility"] == "private"
    assert client.delete(f"/api/kb/knowledge-bases/{kb_id}/").status_code == 204
    assert not KnowledgeBase.objects.exists()


def test_a_client_cannot_make_itself_owner_of_another_base_or_set_its_version() -> None:
    owner = UserFactory(roles=("KB_ADMIN",))
    knowledge_base = KnowledgeBaseFactory(owner=owner)
    other = UserFactory(roles=("KB_ADMIN",))
    client_of(other).patch(
        f"/api/kb/knowledge-bases/{knowledge_base.pk}/", {"owner": other.pk, "version": 99}, format="json"
    )
    knowledge_base.refresh_from_db()
    assert (knowledge_base.owner, knowledge_base.version) == (owner, 0)


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
def test_a_base_that_may_not_be_read_does_not_exist(method: str) -> None:
    knowledge_base = KnowledgeBaseFactory(visibility="private")
    client = client_of(UserFactory(roles=("KB_ADMIN",)))
    assert_error(getattr(client, method)(f"/api/kb/knowledge-bases/{knowledge_base.pk}/"), 404, "not_found")
    assert_error(upload(client, knowledge_base.pk, ("a.md", b"# A")), 404, "not_found")
    assert client.get("/api/kb/knowledge-bases/").json()["count"] == 0


def test_a_reader_may_not_upload_change_or_delete() -> None:
    knowledge_base = KnowledgeBaseFactory()
    client = client_of(UserFactory())
    url = f"/api/kb/knowledge-bases/{knowledge_base.pk}/"
    assert_error(upload(client, knowledge_base.pk, ("a.md", b"# A")), 403, "permission_denied")
    assert_error(client.patch(url, {"name": "x"}, format="json"), 403, "permission_denied")
    assert_error(client.delete(url), 403, "permission_denied")
    assert_error(client.post("/api/kb/knowledge-bases/", {"name": "x"}, format="json"), 403, "permission_denied")
    assert not Document.objects.exists()


def test_it_takes_one_file_and_several() -> None:
    knowledge_base = KnowledgeBaseFactory()
    client = client_of(knowledge_base.owner)
    one = upload(client, knowledge_base.pk, ("a.md", b"# A\n\ntext"))
    assert one.status_code == 202
    assert one.json()["status"] == "pending"
    several = upload(client, knowledge_base.pk, ("b.md", b"# B\n\ntext"), ("c.md", b""), ("d.txt", "端口".encode()))
    assert several.status_code == 202
    assert [row.get("error_code") for row in several.json()] == ["", "empty_document", ""]
    listed = client.get(f"/api/kb/knowledge-bases/{knowledge_base.pk}/documents/").json()
    assert [row["source_name"] for row in listed["results"]] == ["d.txt", "b.md", "a.md"]


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("empty.md", b"", 400, "empty_document"),
        ("blank.md", b" \n\t\n", 400, "empty_document"),
        ("renamed.md", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 8, 415, "unsupported_file"),
        ("image.md", b"\x89PNG\r\n\x1a\n" + bytes(200), 415, "unsupported_file"),
    ],
)
def test_it_refuses_what_it_cannot_read_and_keeps_nothing(name: str, content: bytes, status: int, code: str) -> None:
    knowledge_base = KnowledgeBaseFactory()
    assert_error(upload(client_of(knowledge_base.owner), knowledge_base.pk, (name, content)), status, code)
    assert not Document.objects.exists()


def test_it_refuses_an_upload_without_a_file() -> None:
    knowledge_base = KnowledgeBaseFactory()
    response = client_of(knowledge_base.owner).post(f"/api/kb/knowledge-bases/{knowledge_base.pk}/documents/", {})
    assert_error(response, 400, "invalid")


def test_an_unknown_knowledge_base_is_404() -> None:
    client = client_of(UserFactory(roles=("KB_ADMIN",)))
    assert_error(upload(client, 424242, ("a.md", b"# A")), 404, "not_found")
    search = client.post("/api/kb/search/", {"query": "a", "kb_ids": [424242]}, format="json")
    assert_error(search, 404, "not_found")


@pytest.mark.parametrize("body", [{}, {"query": ""}, {"query": "a", "mode": "magic"}, {"query": "a", "top_k": 0}])
def test_search_refuses_bad_input(body: dict[str, Any]) -> None:
    response = client_of(UserFactory()).post("/api/kb/search/", body, format="json")
    assert_error(response, 400, "invalid")


def test_search_refuses_a_question_that_is_too_long() -> None:
    response = client_of(UserFactory()).post("/api/kb/search/", {"query": "长" * 100_000}, format="json")
    assert_error(response, 400, "invalid")


def test_nobody_signed_in_gets_401_everywhere() -> None:
    for path in ("knowledge-bases/", "knowledge-bases/1/", "knowledge-bases/1/documents/", "documents/1/"):
        response = APIClient().get(f"/api/kb/{path}")
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "not_authenticated"


def test_the_documents_of_a_hidden_base_are_hidden_with_all_they_hold() -> None:
    hidden = KnowledgeBaseFactory(visibility="restricted")
    upload(client_of(hidden.owner), hidden.pk, ("a.md", b"# A\n\ntext"))
    document = Document.objects.get()
    client = client_of(UserFactory())
    for part in ("", "chunks/", "content/", "original/"):
        assert client.get(f"/api/kb/documents/{document.pk}/{part}").status_code == 404
    for verb in ("reingest/", "cancel/"):
        assert client.post(f"/api/kb/documents/{document.pk}/{verb}").status_code == 404
    assert client.delete(f"/api/kb/documents/{document.pk}/").status_code == 404


def test_the_original_comes_back_as_it_was() -> None:
    knowledge_base = KnowledgeBaseFactory()
    content = "# 端口\r\n\r\n默认端口是 8848。".encode()
    client = client_of(knowledge_base.owner)
    document_id = upload(client, knowledge_base.pk, ("端口 说明.md", content)).json()["id"]
    response: Any = client.get(f"/api/kb/documents/{document_id}/original/")
    assert b"".join(response.streaming_content) == content
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment;")
