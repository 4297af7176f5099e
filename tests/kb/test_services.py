from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from pytest_django import Settings

from apps.aiconfig.providers.extractive import ExtractiveChat
from apps.aiconfig.providers.registry import Providers, override_providers
from apps.aiconfig.services import set_config
from apps.kb import fulltext, services, tasks, term_stats
from apps.kb.ingestion.pipeline import Outcome
from apps.kb.models import Chunk, Document, KnowledgeBase, TermStat
from docmind.errors import PermanentError
from docmind.vectors import VectorStore, collection_name
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.fakes import HashingEmbedder

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "# 端口\n\n服务监听 8080 端口。\n"


@pytest.fixture(autouse=True)
def queued(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The tasks that were sent, instead of a broker."""
    file_store = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "files")},
    }
    settings.STORAGES = {**settings.STORAGES, "default": file_store}
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(tasks, "async_task", lambda *arguments, **options: sent.append(arguments))
    return sent


@pytest.fixture
def store(milvus_uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[VectorStore]:
    vectors = VectorStore(milvus_uri)
    monkeypatch.setattr(tasks, "get_vector_store", lambda: vectors)
    with override_providers(Providers(chat=ExtractiveChat(), embedder=HashingEmbedder())):
        yield vectors
    vectors.close()


def upload(knowledge_base: KnowledgeBase, content: bytes, name: str = "guide.md") -> Document:
    return services.upload_document(knowledge_base, user=None, name=name, file=SimpleUploadedFile("x", content))


def test_it_creates_changes_and_deletes_a_knowledge_base() -> None:
    owner = UserFactory.create()
    knowledge_base = services.create_knowledge_base(owner, name=" Docs ", visibility="private")
    assert (knowledge_base.name, knowledge_base.owner, knowledge_base.visibility) == ("Docs", owner, "private")
    services.update_knowledge_base(knowledge_base, name="Manual", description="x")
    knowledge_base.refresh_from_db()
    assert (knowledge_base.name, knowledge_base.description) == ("Manual", "x")
    services.delete_knowledge_base(knowledge_base)
    assert not KnowledgeBase.objects.exists()


def test_it_refuses_fields_that_do_not_fit() -> None:
    knowledge_base = KnowledgeBaseFactory.create()
    with pytest.raises(ValidationError):
        services.update_knowledge_base(knowledge_base, visibility="everyone")
    with pytest.raises(ValidationError):
        services.create_knowledge_base(UserFactory.create(), name="  ")
    with pytest.raises(PermanentError):
        services.update_knowledge_base(knowledge_base, version=7)


def test_it_stores_an_upload_and_queues_it(queued: list[tuple[object, ...]]) -> None:
    user = UserFactory.create()
    document = services.upload_document(
        KnowledgeBaseFactory.create(),
        user=user,
        name="C:\\docs\\..\\端口\x00.md",
        file=SimpleUploadedFile("x", TEXT.encode()),
    )
    assert (document.source_name, document.mime_type, document.status) == ("端口.md", "text/markdown", "pending")
    assert (document.size_bytes, len(document.sha256), document.uploaded_by) == (len(TEXT.encode()), 64, user)
    assert queued == [(tasks.INGEST, document.pk)]
    with services.open_original(document) as file:
        assert file.read().decode() == TEXT
    with pytest.raises(PermanentError) as refusal:
        services.read_markdown(document)
    assert refusal.value.code == "not_found"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_document"),
        (b" \n\t" * 100_000, "empty_document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "unsupported_file"),
        (b"a" * (1024 * 1024 + 1), "file_too_large"),
    ],
)
def test_it_refuses_a_bad_upload_and_keeps_nothing(
    content: bytes, code: str, queued: list[tuple[object, ...]], settings: Settings
) -> None:
    set_config("ingest.max_file_mb", "1", user=None)
    with pytest.raises(PermanentError) as refusal:
        upload(KnowledgeBaseFactory.create(), content)
    assert refusal.value.code == code
    assert not Document.objects.exists()
    assert not queued
    assert not Path(settings.STORAGES["default"]["OPTIONS"]["location"]).exists()


def test_it_ingests_and_deletes_on_a_real_vector_store(store: VectorStore, queued: list[tuple[object, ...]]) -> None:
    knowledge_base = KnowledgeBaseFactory.create()
    documents = []
    for text in (TEXT, "# 内存\n\n内存不足。\n"):
        documents.append(document := upload(knowledge_base, text.encode()))
        assert tasks.ingest(document.pk) == "done"
        document.refresh_from_db()
        assert document.status == "ready"
    kept, gone = documents
    name = collection_name("chunks", HashingEmbedder.fingerprint)
    children = Chunk.objects.filter(live=True, vector_id__isnull=False)
    assert store.iter_ids(name, gone.pk) == set(children.filter(document=gone).values_list("vector_id", flat=True))
    assert services.read_markdown(gone) == "# 内存\n\n内存不足。\n"
    assert services.document_pages(gone) == ()
    folder = gone.storage_key.rpartition("/")[0]
    queued.clear()
    services.delete_document(gone)
    [(func, *arguments)] = queued
    assert func == tasks.FORGET_VECTORS
    tasks.forget_vectors(*arguments)  # type: ignore[arg-type]
    assert store.iter_ids(name, gone.pk) == set()
    assert len(store.iter_ids(name, kept.pk)) == 1
    assert default_storage.listdir(folder) == ([], [])
    knowledge_base.refresh_from_db()
    assert (knowledge_base.version, knowledge_base.chunk_count) == (3, 1)
    assert knowledge_base.term_total == children.get().term_count
    assert list(fulltext.read_rows(list(children.values_list("pk", flat=True)))) == [children.get().pk]
    assert not fulltext.orphan_ids()
    store.drop_collection(name)


def test_it_deletes_a_knowledge_base_with_everything_in_it(
    store: VectorStore, queued: list[tuple[object, ...]], settings: Settings
) -> None:
    knowledge_base = KnowledgeBaseFactory.create()
    other = upload(KnowledgeBaseFactory.create(), TEXT.encode())
    for document in (upload(knowledge_base, TEXT.encode()), upload(knowledge_base, TEXT.encode()), other):
        tasks.ingest(document.pk)
    services.delete_knowledge_base(knowledge_base)
    assert set(Chunk.objects.values_list("document_id", flat=True)) == {other.pk}
    assert set(TermStat.objects.values_list("knowledge_base_id", flat=True)) == {other.knowledge_base_id}
    assert not fulltext.orphan_ids()
    assert len(list(Path(settings.STORAGES["default"]["OPTIONS"]["location"]).rglob("original.md"))) == 1
    store.drop_collection(collection_name("chunks", HashingEmbedder.fingerprint))


def test_it_says_when_something_is_missing() -> None:
    document = upload(KnowledgeBaseFactory.create(), TEXT.encode())
    default_storage.delete(document.storage_key)
    with pytest.raises(PermanentError):
        services.open_original(document)
    services.delete_document(document)
    for verb in (services.delete_document, services.reingest_document, services.cancel_document):
        with pytest.raises(PermanentError) as refusal:
            verb(document)
        assert refusal.value.code == "not_found"


def test_it_replaces_the_original(queued: list[tuple[object, ...]]) -> None:
    document = upload(KnowledgeBaseFactory.create(), TEXT.encode())
    old = document.storage_key
    replaced = services.replace_document(document, name="new.md", file=ContentFile(b"# New\n\ntext\n"))
    assert (replaced.source_name, replaced.revision, replaced.status) == ("new.md", 2, "pending")
    assert not default_storage.exists(old)
    assert queued == [(tasks.INGEST, document.pk)] * 2


def test_it_counts_terms_in_and_out_again() -> None:
    knowledge_base = KnowledgeBaseFactory.create()
    term_stats.add(knowledge_base.pk, [["z7aa", "z7ab", "z7aa"], ["z7aa"]])
    knowledge_base.refresh_from_db()
    assert (knowledge_base.chunk_count, knowledge_base.term_total) == (2, 4)
    stats = TermStat.objects.filter(knowledge_base=knowledge_base)
    assert dict(stats.values_list("term", "document_frequency")) == {"z7aa": 2, "z7ab": 1}
    term_stats.remove(knowledge_base.pk, [["z7aa", "z7ab", "z7aa"]])
    assert dict(stats.values_list("term", "document_frequency")) == {"z7aa": 1}


def test_it_sweeps_up_to_a_full_queue(queued: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    document = upload(KnowledgeBaseFactory.create(), TEXT.encode())
    queued.clear()

    class Broker:
        waiting = 0

        def queue_size(self) -> int:
            return self.waiting

    monkeypatch.setattr(tasks, "get_broker", Broker)
    assert tasks.sweep() == 0
    Document.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=61))
    monkeypatch.setattr(Broker, "waiting", tasks.MAX_WAITING)
    assert tasks.sweep() == 0
    monkeypatch.setattr(Broker, "waiting", 0)
    assert tasks.sweep() == 1
    assert tasks.sweep() == 0
    assert queued == [(tasks.INGEST, document.pk)]


def test_it_queues_the_next_slice_itself(queued: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "run_slice", lambda document_id, tools: Outcome.CONTINUE)
    assert tasks.ingest(5) == "continue"
    assert queued == [(tasks.INGEST, 5)]


def test_it_schedules_the_sweep_once() -> None:
    for _migration in range(2):
        tasks.ensure_schedule()
    assert Schedule.objects.filter(func=tasks.SWEEP).count() == 1


def test_it_queues_nothing_when_the_upload_is_rolled_back(queued: list[tuple[object, ...]]) -> None:
    assert not OrmQ.objects.exists()
    knowledge_base = KnowledgeBaseFactory.create()
    KnowledgeBase.objects.filter(pk=knowledge_base.pk).delete()
    with pytest.raises(Exception, match=r"(?i)foreign key|constraint"):
        upload(knowledge_base, TEXT.encode())
    assert not queued
