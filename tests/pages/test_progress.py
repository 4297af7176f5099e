"""Live progress: what is told to those who listen, and to whom."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.test import AsyncClient

from apps.kb import progress
from apps.kb.models import Document
from apps.kb.progress import DocumentChannels, Seen, first_look, read_changes
from tests.factories import KnowledgeBaseFactory, UserFactory


@pytest.mark.django_db
def test_it_tells_each_change_once() -> None:
    knowledge_base = KnowledgeBaseFactory()
    document = Document.objects.create(knowledge_base=knowledge_base, source_name="a.md")
    seen, changes = read_changes(knowledge_base.pk, first_look(knowledge_base.pk))
    assert [change.payload["status"] for change in changes] == ["pending"]
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert changes == ()
    Document.objects.filter(pk=document.pk).update(status="indexing", progress=0.5)
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert [(change.kind, change.payload["progress"]) for change in changes] == [("document", 0.5)]
    Document.objects.filter(pk=document.pk).update(status="ready", progress=1.0)
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert [change.payload["status"] for change in changes] == ["ready"]
    assert read_changes(knowledge_base.pk, seen) == (Seen(newest_id=document.pk), ())


@pytest.mark.django_db
def test_it_tells_of_new_and_deleted_documents() -> None:
    knowledge_base = KnowledgeBaseFactory()
    seen = first_look(knowledge_base.pk)
    document = Document.objects.create(knowledge_base=knowledge_base, source_name="b.md", status="parsing")
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert [change.payload["source_name"] for change in changes] == ["b.md"]
    pk = document.pk
    document.delete()
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert [(change.kind, change.payload) for change in changes] == [("document-deleted", {"id": pk})]


@pytest.mark.django_db
def test_it_tells_of_a_document_that_became_ready_between_two_looks() -> None:
    knowledge_base = KnowledgeBaseFactory()
    seen = first_look(knowledge_base.pk)
    Document.objects.create(knowledge_base=knowledge_base, source_name="quick.md", status="ready")
    seen, changes = read_changes(knowledge_base.pk, seen)
    assert [change.payload["status"] for change in changes] == ["ready"]
    assert read_changes(knowledge_base.pk, seen)[1] == ()


@pytest.mark.django_db
def test_it_spreads_many_changes_over_several_looks() -> None:
    knowledge_base = KnowledgeBaseFactory()
    seen = first_look(knowledge_base.pk)
    Document.objects.bulk_create(Document(knowledge_base=knowledge_base, source_name=f"{n}.md") for n in range(20))
    told: list[str] = []
    for _look in range(4):
        seen, changes = read_changes(knowledge_base.pk, seen)
        assert len(changes) <= progress.EVENTS_A_TICK
        told += [change.payload["source_name"] for change in changes]
    assert sorted(told) == sorted(f"{n}.md" for n in range(20))


@pytest.mark.django_db
def test_a_channel_is_open_to_readers_alone() -> None:
    owner = UserFactory(roles=("KB_ADMIN",))
    private = KnowledgeBaseFactory(owner=owner, visibility="private")
    channels = DocumentChannels()
    assert channels.can_read_channel(owner, f"kb-{private.pk}")
    assert not channels.can_read_channel(UserFactory(), f"kb-{private.pk}")
    assert not channels.can_read_channel(None, f"kb-{private.pk}")
    assert not channels.can_read_channel(owner, "something-else")


@pytest.mark.django_db(transaction=True)
async def test_parameters_of_the_address_change_nothing() -> None:
    knowledge_base = await asyncio.to_thread(KnowledgeBaseFactory)
    client = AsyncClient()
    await client.aforce_login(await asyncio.to_thread(UserFactory))
    response = await client.get(f"/kb/{knowledge_base.pk}/events/?es-meta=junk&channel=kb-1")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"


@pytest.mark.django_db(transaction=True)
async def test_it_streams_changes_while_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0.01)
    # The process's own may still know listeners of another test's event loop, which has ended.
    monkeypatch.setattr(progress, "watcher", progress.DocumentWatcher())
    knowledge_base = await asyncio.to_thread(KnowledgeBaseFactory)
    client = AsyncClient()
    await client.aforce_login(await asyncio.to_thread(UserFactory))
    document = await Document.objects.acreate(knowledge_base=knowledge_base, source_name="a.md")
    response = await client.get(f"/kb/{knowledge_base.pk}/events/")
    assert response["Content-Type"] == "text/event-stream"
    statuses: list[str] = []
    told = asyncio.Event()

    async def listen() -> None:
        async for frame in response.streaming_content:  # type: ignore[attr-defined]
            lines = [line for line in frame.decode().splitlines() if line.startswith("data: {")]
            statuses.extend(json.loads(line[6:])["status"] for line in lines)
            if lines:
                told.set()

    async with asyncio.timeout(10):
        listener = asyncio.create_task(listen())
        await told.wait()
        told.clear()
        await Document.objects.filter(pk=document.pk).aupdate(status="ready")
        await told.wait()
    assert progress.watcher._tasks
    # The server cancels the task of a client that has gone.
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    assert statuses == ["pending", "ready"]
    assert not progress.watcher._tasks
