"""Crashes, cancels and deletes at every commit: one slice at a time, ready once, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps.kb import services
from apps.kb.ingestion import embed, publish, store
from apps.kb.ingestion import lease as lease_module
from apps.kb.ingestion.lease import Lease, LeaseLost, owner_is_dead, process_identity, take_lease
from apps.kb.ingestion.pipeline import Outcome, Tools, run_slice
from apps.kb.ingestion.recovery import documents_to_wake, mark_woken, retry_delay
from apps.kb.ingestion.transactions import write_transaction
from apps.kb.models import Chunk, Document, KnowledgeBase, TermStat
from docmind.errors import PermanentError
from tests.fakes import HashingEmbedder
from tests.kb.ingestion.support import MemoryVectors, ingest, sections, upload
from tests.kb.ingestion.test_pipeline import assert_consistent

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """Stands for kill -9: no handler of the slice sees it, nothing is tidied up."""


def interrupt_at(monkeypatch: pytest.MonkeyPatch, commit: int, action: Callable[[], None]) -> None:
    """Runs `action` before the given commit of the lease, once."""
    original = Lease.commit
    seen = 0

    def counted(self: Lease, **fields: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == commit:
            action()
        original(self, **fields)

    monkeypatch.setattr(Lease, "commit", counted)


def act_at(monkeypatch: pytest.MonkeyPatch, write: int, action: Callable[[], object]) -> None:
    """Runs `action`, as another process would, before the given write of the slice begins its transaction."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == write:
            action()

    original = Lease.commit

    def commit(self: Lease, **fields: Any) -> None:
        if not connection.in_atomic_block:
            count()
        original(self, **fields)

    @contextmanager
    def counted_transaction() -> Iterator[None]:
        count()
        with write_transaction():
            yield

    monkeypatch.setattr(Lease, "commit", commit)
    for module in (store, publish, embed):
        monkeypatch.setattr(module, "write_transaction", counted_transaction)


def age_lease(document: Document) -> None:
    past = timezone.now() - timedelta(seconds=lease_module.LEASE_S + 1)
    Document.objects.filter(pk=document.pk).update(heartbeat_at=past)


@pytest.mark.parametrize("commit", range(1, 16))
def test_it_is_ready_once_after_a_crash_at_any_commit(
    knowledge_base: KnowledgeBase,
    vectors: MemoryVectors,
    embedder: HashingEmbedder,
    tools: Tools,
    monkeypatch: pytest.MonkeyPatch,
    commit: int,
) -> None:
    def kill() -> None:
        raise Killed

    document = upload(knowledge_base, sections(20, paragraphs=8))
    with monkeypatch.context() as patch:
        interrupt_at(patch, commit, kill)
        with pytest.raises(Killed):
            run_slice(document.pk, tools)
    assert run_slice(document.pk, tools) is Outcome.NOTHING
    age_lease(document)
    assert ingest(document, tools).status == "ready"
    assert Chunk.objects.filter(document=document, vector_id__isnull=False).count() == document.chunk_count
    assert_consistent(knowledge_base, vectors)
    texts = [text for call in embedder.calls for text in call]
    assert len(texts) - len(set(texts)) <= tools.config.embedding_batch_size


@pytest.mark.parametrize("write", range(1, 14))
def test_it_ends_quietly_when_the_document_is_deleted_at_any_moment(
    knowledge_base: KnowledgeBase,
    vectors: MemoryVectors,
    tools: Tools,
    monkeypatch: pytest.MonkeyPatch,
    write: int,
) -> None:
    document = upload(knowledge_base, sections(20, paragraphs=8))
    act_at(monkeypatch, write, lambda: services.delete_document(document))
    assert run_slice(document.pk, tools) is Outcome.NOTHING
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()
    assert not TermStat.objects.exists()
    assert_consistent(knowledge_base, vectors)


@pytest.mark.parametrize("write", range(1, 14))
def test_it_stops_at_the_next_commit_when_cancelled(
    knowledge_base: KnowledgeBase,
    vectors: MemoryVectors,
    tools: Tools,
    monkeypatch: pytest.MonkeyPatch,
    write: int,
) -> None:
    document = upload(knowledge_base, sections(20, paragraphs=8))
    with monkeypatch.context() as patch:
        act_at(patch, write, lambda: services.cancel_document(document))
        assert run_slice(document.pk, tools) is Outcome.NOTHING
    document.refresh_from_db()
    assert document.status == "cancelled"
    assert not Chunk.objects.filter(document=document, live=False).exists()
    with pytest.raises(PermanentError):
        services.cancel_document(document)
    services.reingest_document(document)
    assert ingest(document, tools).status == "ready"
    assert_consistent(knowledge_base, vectors)


def test_it_lets_one_slice_at_a_time_work(knowledge_base: KnowledgeBase) -> None:
    document = upload(knowledge_base, sections(1))
    first = take_lease(document.pk)
    assert first is not None
    assert take_lease(document.pk) is None
    with pytest.raises(PermanentError) as refusal:
        services.reingest_document(document)
    assert refusal.value.code == "conflict"
    age_lease(document)
    second = take_lease(document.pk)
    assert second is not None
    assert second.taken_from_the_dead
    assert second.attempts == 1
    with pytest.raises(LeaseLost):
        first.commit(progress=0.5)
    second.commit(progress=0.5)


def test_it_takes_over_at_once_from_a_dead_process(knowledge_base: KnowledgeBase) -> None:
    code = "import sys; sys.path.insert(0, '.')\nimport django; django.setup()\n"
    code += "from apps.kb.ingestion.lease import process_identity; print(process_identity())"
    identity = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    owner = f"{identity}:nonce"
    assert owner_is_dead(owner)
    assert not owner_is_dead(f"{process_identity()}:nonce")
    assert not owner_is_dead("elsewhere:1:1:nonce")
    document = upload(knowledge_base, sections(1))
    Document.objects.filter(pk=document.pk).update(lease_owner=owner, heartbeat_at=timezone.now())
    assert documents_to_wake(timezone.now(), idle_s=60, limit=10) == [document.pk]
    assert take_lease(document.pk) is not None


def test_it_wakes_what_lost_its_task_and_nothing_else(knowledge_base: KnowledgeBase, tools: Tools) -> None:
    now = timezone.now()
    long_ago, soon = now - timedelta(seconds=61), now + timedelta(seconds=30)

    def document(**fields: Any) -> int:
        created = upload(knowledge_base, "正文。")
        Document.objects.filter(pk=created.pk).update(**fields)
        return created.pk

    forgotten = document(heartbeat_at=long_ago)
    silent = document(lease_owner="elsewhere:1:1:x", heartbeat_at=long_ago, status="indexing")
    due = document(heartbeat_at=now - timedelta(seconds=20), not_before=now - timedelta(seconds=1))
    document(heartbeat_at=now)
    document(lease_owner="elsewhere:1:1:x", heartbeat_at=now)
    document(heartbeat_at=long_ago, not_before=soon)
    document(heartbeat_at=long_ago, status="ready")
    assert sorted(documents_to_wake(now, idle_s=60, limit=10)) == [forgotten, silent, due]
    for pk in (forgotten, due):
        mark_woken(pk, now)
    assert documents_to_wake(now, idle_s=60, limit=10) == [silent]


def test_it_waits_longer_after_each_failure() -> None:
    assert [retry_delay(n).total_seconds() for n in (1, 2, 3, 7, 50)] == [10, 20, 40, 600, 600]


def test_it_is_patient_with_a_document_that_kills_its_workers_but_not_for_ever(
    knowledge_base: KnowledgeBase, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_arguments: object) -> Outcome:
        raise Killed

    monkeypatch.setattr("apps.kb.ingestion.pipeline._advance", die)
    document = upload(knowledge_base, sections(1))
    deaths = waits = 0
    while Document.objects.get(pk=document.pk).status == "pending":
        Document.objects.filter(pk=document.pk).update(not_before=None)
        try:
            waits += run_slice(document.pk, tools) is Outcome.WAITING
        except Killed:
            deaths += 1
            age_lease(document)
        assert deaths < 20
    document.refresh_from_db()
    assert (document.status, document.error_code) == ("failed", "interrupted")
    assert waits >= 4
