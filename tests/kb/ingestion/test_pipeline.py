from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import OperationalError

from apps.aiconfig.providers.types import EmbeddingKind
from apps.kb import fulltext, services
from apps.kb.ingestion.pipeline import Outcome, Tools, run_slice
from apps.kb.models import Chunk, Document, KnowledgeBase, TermStat
from docmind.errors import PermanentError, TransientError
from docmind.text import encode_term, segment
from tests.fakes import HashingEmbedder
from tests.kb.ingestion.support import MemoryVectors, ingest, live_children, make_tools, one_batch, sections, upload

pytestmark = pytest.mark.django_db(transaction=True)


def assert_consistent(knowledge_base: KnowledgeBase, vectors: MemoryVectors) -> None:
    """Rows, search rows, statistics and vectors tell the same."""
    children = list(Chunk.objects.filter(knowledge_base=knowledge_base, live=True, vector_id__isnull=False))
    assert not Chunk.objects.filter(knowledge_base=knowledge_base, live=False).exists()
    assert fulltext.read_rows([child.pk for child in children]).keys() == {child.pk for child in children}
    assert not fulltext.orphan_ids()
    assert vectors.ids == {child.vector_id for child in children}
    knowledge_base.refresh_from_db()
    assert knowledge_base.chunk_count == len(children)
    assert knowledge_base.term_total == sum(child.term_count for child in children)
    counted: dict[str, int] = {}
    for text in fulltext.read_rows([child.pk for child in children]).values():
        for term in set(text.split()):
            counted[term] = counted.get(term, 0) + 1
    stats = TermStat.objects.filter(knowledge_base=knowledge_base)
    assert dict(stats.values_list("term", "document_frequency")) == counted


def test_it_takes_a_document_from_upload_to_ready(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, embedder: HashingEmbedder, tools: Tools
) -> None:
    document = ingest(upload(knowledge_base, "---\nversion: 2\n---\n" + sections(6)), tools)
    assert (document.status, document.progress, document.error) == ("ready", 1.0, "")
    assert (document.parser, document.doc_version, document.lease_owner) == ("markdown", "2", "")
    assert document.published_at is not None
    children = live_children(document)
    assert document.chunk_count == len(children) == 6
    markdown = services.read_markdown(document)
    assert all(child.content == markdown[child.start_char : child.end_char] for child in children)
    assert children[0].heading_path == "手册 > 第 0 节"
    assert children[0].vector_state == "stored"
    assert children[0].term_count == len(segment(f"手册\n第 0 节\n{children[0].content}"))
    assert embedder.calls[0][0] == f"手册\n第 0 节\n{children[0].content}"
    stat = TermStat.objects.get(knowledge_base=knowledge_base, term=encode_term("maxpoolsize"))
    assert stat.document_frequency == 6
    assert_consistent(knowledge_base, vectors)
    assert knowledge_base.version == 1
    assert knowledge_base.embedding_fingerprint == embedder.fingerprint


def test_it_links_children_to_their_parents(knowledge_base: KnowledgeBase, tools: Tools) -> None:
    document = ingest(upload(knowledge_base, sections(2, paragraphs=12)), tools)
    for child in live_children(document):
        parent = child.parent_chunk
        assert parent is not None
        assert parent.live
        assert parent.vector_id is None
        assert child.content in parent.content


def test_it_works_in_slices_and_embeds_nothing_twice(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, embedder: HashingEmbedder, tools: Tools
) -> None:
    document = upload(knowledge_base, sections(40))
    outcomes: list[Outcome] = []
    progress: list[float] = []
    while not outcomes or outcomes[-1] is not Outcome.DONE:
        outcomes.append(run_slice(document.pk, one_batch(tools)))
        document.refresh_from_db()
        progress.append(document.progress)
        assert len(outcomes) < 50
    assert Outcome.CONTINUE in outcomes
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    texts = [text for call in embedder.calls for text in call]
    assert len(texts) == len(set(texts)) == document.chunk_count
    assert_consistent(knowledge_base, vectors)


def test_a_long_document_gives_way_to_one_that_cannot_be_found_yet(
    knowledge_base: KnowledgeBase, embedder: HashingEmbedder, tools: Tools
) -> None:
    long = upload(knowledge_base, sections(40))
    short = upload(knowledge_base, "# 端口\n\n默认端口是 8848。", "short.md")
    assert run_slice(long.pk, tools) is Outcome.CONTINUE
    assert live_children(long)
    assert embedder.calls == []
    assert run_slice(long.pk, tools) is Outcome.CONTINUE
    assert len(embedder.calls) == 1, "one batch a slice while another document waits"
    assert run_slice(short.pk, tools) is Outcome.DONE
    assert run_slice(long.pk, tools) is Outcome.DONE


def test_it_keeps_rows_and_vectors_of_unchanged_chunks(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, embedder: HashingEmbedder, tools: Tools
) -> None:
    text = sections(30)
    document = ingest(upload(knowledge_base, text), tools)
    before = {child.content_hash: (child.pk, child.vector_id) for child in live_children(document)}
    embedder.calls.clear()
    edited = text.replace("默认值是 1500。", "默认值是 1500 以上。", 1)
    assert edited != text
    services.replace_document(document, name="guide.md", file=ContentFile(edited.encode()))
    ingest(document, tools)
    assert sum(map(len, embedder.calls)) == 1
    after = {child.content_hash: (child.pk, child.vector_id) for child in live_children(document)}
    assert len(before.keys() - after.keys()) == 1
    assert all(after[key] == before[key] for key in before.keys() & after.keys())
    markdown = services.read_markdown(document)
    assert markdown == edited
    assert all(child.content == markdown[child.start_char : child.end_char] for child in live_children(document))
    assert_consistent(knowledge_base, vectors)
    assert knowledge_base.version == 2


def test_it_embeds_nothing_for_a_new_name_and_changes_nothing_for_the_same_file(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, embedder: HashingEmbedder, tools: Tools
) -> None:
    text = sections(5)
    document = ingest(upload(knowledge_base, text), tools)
    embedder.calls.clear()
    services.reingest_document(document)
    ingest(document, tools)
    knowledge_base.refresh_from_db()
    assert knowledge_base.version == 1
    services.replace_document(document, name="renamed.md", file=ContentFile(text.encode()))
    ingest(document, tools)
    assert embedder.calls == []
    assert {child.source_file_name for child in live_children(document)} == {"renamed.md"}
    assert_consistent(knowledge_base, vectors)
    files = [name for folder in default_storage.listdir(f"kb/{knowledge_base.pk}")[0] for name in listing(folder)]
    assert sorted(files) == ["original.md", "r3.md", "r3.md.json"]


def listing(folder: str) -> list[str]:
    kb_id = KnowledgeBase.objects.get().pk
    return list(default_storage.listdir(f"kb/{kb_id}/{folder}")[1])


def test_it_keeps_the_old_version_until_the_new_one_is_published(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    document = ingest(upload(knowledge_base, sections(30)), tools)
    old = [child.pk for child in live_children(document)]
    services.replace_document(document, name="guide.md", file=ContentFile(("旧的都不要了。" * 4000).encode()))
    for _slice in range(2):
        run_slice(document.pk, one_batch(tools))
    assert Chunk.objects.filter(document=document, live=False).exists()
    assert [child.pk for child in live_children(document)] == old
    assert "maxPoolSize" in services.read_markdown(Document.objects.get(pk=document.pk))
    ingest(document, tools)
    assert not {child.pk for child in live_children(document)} & set(old)
    assert_consistent(knowledge_base, vectors)


def test_it_is_ready_with_keyword_search_alone_without_an_embedder(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    document = ingest(upload(knowledge_base, sections(3)), make_tools(vectors, None))
    assert document.status == "ready"
    assert {child.vector_state for child in live_children(document)} == {"none"}
    assert len(fulltext.row_ids(document.pk)) == 3
    services.reingest_document(document)
    ingest(document, tools)
    assert {child.vector_state for child in live_children(document)} == {"stored"}
    assert_consistent(knowledge_base, vectors)


def test_it_answers_by_keyword_while_the_vector_store_is_down(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    vectors.failures = 12
    document = upload(knowledge_base, sections(3))
    assert run_slice(document.pk, tools) is Outcome.WAITING
    document.refresh_from_db()
    assert (document.status, document.error_code, document.attempts) == ("indexing", "vector_store_unavailable", 1)
    assert document.not_before is not None
    assert run_slice(document.pk, tools) is Outcome.NOTHING
    assert len(live_children(document)) == len(fulltext.row_ids(document.pk)) == 3
    ingest(document, tools)
    assert (document.status, document.error, document.error_code, document.attempts) == ("ready", "", "", 0)
    assert_consistent(knowledge_base, vectors)


class RefusingEmbedder(HashingEmbedder):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        raise self.error


def test_it_fails_with_the_reason_when_the_model_refuses_and_still_answers(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    refusing = RefusingEmbedder(PermanentError("The key is not valid.", code="unauthorized"))
    document = ingest(upload(knowledge_base, sections(3)), replace(tools, embedder=refusing))
    assert (document.status, document.error_code, document.error) == ("failed", "unauthorized", "The key is not valid.")
    assert len(live_children(document)) == 3
    services.reingest_document(document)
    assert ingest(document, tools).status == "ready"
    assert_consistent(knowledge_base, vectors)


def test_it_gives_up_on_what_nobody_foresaw_and_says_so(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    document = upload(knowledge_base, sections(1))
    broken = replace(tools, embedder=RefusingEmbedder(RuntimeError("secret detail")))
    document = ingest(document, broken)
    assert (document.status, document.error_code) == ("failed", "internal_error")
    assert "secret" not in document.error


def test_it_gives_up_before_publication_after_too_many_transient_faults(
    knowledge_base: KnowledgeBase, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(key: str) -> bytes:
        raise TransientError("The file store is unreachable.", code="storage_unavailable")

    monkeypatch.setattr("apps.kb.ingestion.files.load_original", unreachable)
    document = ingest(upload(knowledge_base, sections(1)), tools)
    assert (document.status, document.error_code) == ("failed", "storage_unavailable")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"# \n\n---\n", "empty_document"), (b"text " * 20_000 + b"\x00\x01\x02" * 500, "unsupported_file")],
)
def test_it_refuses_what_only_parsing_can_tell_and_leaves_nothing_behind(
    knowledge_base: KnowledgeBase, tools: Tools, content: bytes, code: str
) -> None:
    document = ingest(upload(knowledge_base, content), tools)
    assert (document.status, document.error_code) == ("failed", code)
    assert document.error
    assert not Chunk.objects.exists()


def test_it_makes_vectors_again_that_the_store_has_lost(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    document = ingest(upload(knowledge_base, sections(3)), tools)
    next(iter(vectors.collections.values())).clear()
    services.reingest_document(document)
    assert ingest(document, tools).status == "ready"
    assert_consistent(knowledge_base, vectors)


def test_it_writes_vectors_again_when_tags_change(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools
) -> None:
    document = ingest(upload(knowledge_base, "---\ntags: [old]\n---\n# A\n\n正文。\n"), tools)
    changed = ContentFile("---\ntags: [new]\n---\n# A\n\n正文。\n".encode())
    services.replace_document(document, name="guide.md", file=changed)
    ingest(document, tools)
    assert [row.tags for rows in vectors.collections.values() for row in rows.values()] == [("new", "A")]


def test_it_tries_a_lock_conflict_again_at_once(
    knowledge_base: KnowledgeBase, vectors: MemoryVectors, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadlock(*_arguments: object, **_options: object) -> None:
        raise OperationalError(1213, "Deadlock found when trying to get lock")

    document = upload(knowledge_base, sections(2))
    with monkeypatch.context() as patch:
        patch.setattr(fulltext, "write_rows", deadlock)
        outcomes = [run_slice(document.pk, tools) for _slice in range(4)]
    assert outcomes == [Outcome.CONTINUE, Outcome.CONTINUE, Outcome.CONTINUE, Outcome.WAITING]
    assert ingest(document, tools).status == "ready"
    assert_consistent(knowledge_base, vectors)
