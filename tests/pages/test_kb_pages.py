"""Knowledge-base and document pages: who sees them, what they offer, how a passage is shown."""

from __future__ import annotations

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from apps.kb.ingestion import files
from apps.kb.ingestion.types import ParsedDocument
from apps.kb.models import AccessGrant, Document, KnowledgeBase
from apps.rbac.models import User
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db

MARKDOWN = "# 手册\n\n第一段，无关。\n\n端口在 `server.port` 里改，**默认 8080**。\n\n<script>alert(1)</script>\n"


def published(knowledge_base: KnowledgeBase, name: str = "手册.md") -> Document:
    key = files.store_original(knowledge_base.pk, name, ContentFile(MARKDOWN.encode(), name))
    markdown_key = files.markdown_key(key, 1)
    files.store_parsed(markdown_key, ParsedDocument(markdown=MARKDOWN, parser="markdown"))
    return Document.objects.create(
        knowledge_base=knowledge_base,
        source_name=name,
        status=Document.Status.READY,
        storage_key=key,
        markdown_key=markdown_key,
        published_at=timezone.now(),
        revision=1,
    )


def signed_in(user: User) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


@pytest.mark.parametrize("visibility", ["restricted", "private"])
def test_what_may_not_be_read_does_not_exist(visibility: str) -> None:
    hidden = KnowledgeBaseFactory(name="Hidden one", visibility=visibility)
    document = published(hidden)
    client = signed_in(UserFactory())
    assert "Hidden one" not in client.get("/kb/").content.decode()
    for path in (f"/kb/{hidden.pk}/", f"/kb/{hidden.pk}/events/", f"/kb/documents/{document.pk}/", "/kb/999999/"):
        assert client.get(path).status_code == 404


def test_a_grant_opens_the_pages_and_no_more() -> None:
    user = UserFactory()
    shared = KnowledgeBaseFactory(visibility="restricted")
    AccessGrant.objects.create(knowledge_base=shared, user=user, level="read")
    page = signed_in(user).get(f"/kb/{shared.pk}/").content.decode()
    assert shared.name in page
    assert "data-drop" not in page
    assert "data-delete-kb" not in page
    assert 'id="edit"' not in page


def test_the_owner_is_offered_upload_edit_and_delete() -> None:
    shown = KnowledgeBaseFactory()
    assert shown.owner is not None
    page = signed_in(shown.owner).get(f"/kb/{shown.pk}/").content.decode()
    assert "data-drop" in page
    assert "data-delete-kb" in page
    assert "at most 50 MB" in page
    assert 'data-max-bytes="52428800"' in page


def test_a_reader_cannot_create_knowledge_bases() -> None:
    assert "data-create" not in signed_in(UserFactory()).get("/kb/").content.decode()
    assert "data-create" in signed_in(UserFactory(roles=("KB_ADMIN",))).get("/kb/").content.decode()


def test_counts_and_hostile_names_are_shown_as_text() -> None:
    shown = KnowledgeBaseFactory(name="<img src=x>", description="<b>bold</b>", chunk_count=7)
    published(shown, "a.md")
    published(shown, '<script>alert("x")</script>.md')
    page = signed_in(UserFactory()).get("/kb/").content.decode()
    assert "&lt;img src=x&gt;" in page
    assert "2 documents" in page
    assert "7 passages" in page
    page = signed_in(UserFactory()).get(f"/kb/{shown.pk}/").content.decode()
    assert "<script>alert" not in page


def test_documents_come_a_page_at_a_time() -> None:
    shown = KnowledgeBaseFactory()
    Document.objects.bulk_create(
        Document(knowledge_base=shown, source_name=f"{n}.md", status="ready") for n in range(51)
    )
    client = signed_in(UserFactory())
    assert len(client.get(f"/kb/{shown.pk}/").context["documents"]) == 50
    assert len(client.get(f"/kb/{shown.pk}/?page=2").context["documents"]) == 1
    assert client.get(f"/kb/{shown.pk}/?page=nonsense").status_code == 200


def test_the_list_asks_a_fixed_number_of_queries(django_assert_max_num_queries: object) -> None:
    for _number in range(12):
        KnowledgeBaseFactory()
    client = signed_in(UserFactory())
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        client.get("/kb/")


def test_a_document_is_rendered_with_its_passage_marked() -> None:
    document = published(KnowledgeBaseFactory())
    start = MARKDOWN.index("端口")
    end = MARKDOWN.index("8080") + 4
    page = signed_in(UserFactory()).get(f"/kb/documents/{document.pk}/?start={start}&end={end}").content.decode()
    assert '<section class="passage" id="passage"' in page
    assert "<mark>端口在 </mark>" in page
    assert "<mark>默认 8080</mark>" in page
    assert "<mark>第一段" not in page
    assert "<script>alert(1)" not in page
    assert f"/api/kb/documents/{document.pk}/original/" in page


@pytest.mark.parametrize(
    "query", ["start=1", "start=a&end=b", "start=-5&end=-1", "start=9&end=2", "start=99999999&end=100000000"]
)
def test_senseless_offsets_show_the_document_unmarked(query: str) -> None:
    document = published(KnowledgeBaseFactory())
    response = signed_in(UserFactory()).get(f"/kb/documents/{document.pk}/?{query}")
    assert response.status_code == 200
    assert "<mark>" not in response.content.decode()
    assert "第一段" in response.content.decode()


def test_a_document_without_text_says_so() -> None:
    document = Document.objects.create(knowledge_base=KnowledgeBaseFactory(), source_name="new.md")
    response = signed_in(UserFactory()).get(f"/kb/documents/{document.pk}/")
    assert response.status_code == 200
    assert "no text yet" in response.content.decode()
