"""What the ingestion suites share: a vector store in memory, tools, and a driver that plays the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.core.files.base import ContentFile

from apps.aiconfig.providers.types import Embedder
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb import services
from apps.kb.ingestion.lease import ACTIVE
from apps.kb.ingestion.pipeline import Tools, run_slice
from apps.kb.models import Chunk, Document, KnowledgeBase
from docmind.errors import TransientError
from docmind.vectors import VectorRow

PARAGRAPH = "连接池的最大连接数由 maxPoolSize 决定，默认值是 {n}。超过以后新的请求会等待，直到超时。"


class MemoryVectors:
    """VectorIndex in memory. `failures` calls of upsert fail first; `on_upsert` runs before each."""

    def __init__(self) -> None:
        self.collections: dict[str, dict[int, VectorRow]] = {}
        self.upserted: list[int] = []
        self.failures = 0

    def ensure_collection(self, name: str, dimension: int) -> None:
        self.collections.setdefault(name, {})

    def upsert(self, name: str, rows: Sequence[VectorRow]) -> None:
        if self.failures:
            self.failures -= 1
            raise TransientError("down", code="vector_store_unavailable")
        self.collections[name].update({row.id: row for row in rows})
        self.upserted += [row.id for row in rows]

    def delete(self, name: str, ids: Sequence[int]) -> None:
        for row_id in ids:
            self.collections.get(name, {}).pop(row_id, None)

    def delete_by_document(self, name: str, document_id: int) -> None:
        self.delete(name, sorted(self.iter_ids(name, document_id)))

    def iter_ids(self, name: str, document_id: int) -> set[int]:
        return {row.id for row in self.collections.get(name, {}).values() if row.document_id == document_id}

    @property
    def ids(self) -> set[int]:
        return {row_id for rows in self.collections.values() for row_id in rows}


def make_tools(vectors: MemoryVectors, embedder: Embedder | None) -> Tools:
    return Tools(embedder=embedder, vectors=vectors, config=ConfigSnapshot())


def upload(knowledge_base: KnowledgeBase, text: str | bytes, name: str = "guide.md") -> Document:
    content = text.encode() if isinstance(text, str) else text
    return services.upload_document(knowledge_base, user=None, name=name, file=ContentFile(content, name=name))


def ingest(document: Document, tools: Tools, *, slices: int = 50) -> Document:
    """Plays the queue until the document rests; back-off is not waited for."""
    for _slice in range(slices):
        Document.objects.filter(pk=document.pk).update(not_before=None)
        run_slice(document.pk, tools)
        document.refresh_from_db()
        if document.status not in ACTIVE:
            return document
    raise AssertionError(f"still {document.status} {document.error} after {slices} slices")


def one_batch(tools: Tools) -> Tools:
    """The same tools with a clock that allows one more batch a slice."""
    ticks = iter(range(1_000_000))
    return replace(tools, clock=lambda: float(next(ticks)), slice_s=4.0)


def live_children(document: Document) -> list[Chunk]:
    children = Chunk.objects.filter(document=document, live=True, vector_id__isnull=False)
    return list(children.order_by("chunk_index"))


def sections(count: int, paragraphs: int = 3) -> str:
    """Markdown with `count` sections under one title; every paragraph differs."""
    parts = ["# 手册\n"]
    for number in range(count):
        parts.append(f"## 第 {number} 节\n")
        parts += [PARAGRAPH.format(n=number * 100 + k) * 3 + "\n" for k in range(paragraphs)]
    return "\n".join(parts)
