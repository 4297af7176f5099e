"""Gives a published document's children their vectors: embed a batch, write it to the vector store, note it.

`vector_state` says what is done, so nothing is embedded twice but for the batch in flight when a worker died.
At the end the store is compared with the rows: vectors of chunks that went are removed, missing ones are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asgiref.sync import async_to_sync
from django.utils.translation import gettext as _

from apps.aiconfig.providers.types import Embedder
from apps.kb.ingestion.indexed_text import indexed_text
from apps.kb.ingestion.lease import Lease
from apps.kb.ingestion.transactions import write_transaction
from apps.kb.ingestion.types import VectorIndex
from apps.kb.models import Chunk, KnowledgeBase
from docmind.errors import TransientError
from docmind.vectors import VectorRow, collection_name

LOCAL_BATCH = 4
"""A local model takes about half a second a passage: a small batch keeps the heartbeat and cancelling prompt."""


def embed_document(
    lease: Lease,
    kb_id: int,
    embedder: Embedder,
    vectors: VectorIndex,
    *,
    batch_size: int,
    progress: Callable[[float], float],
    is_due: Callable[[], bool],
) -> bool:
    """Embeds what is pending, one batch at the least. True when nothing is; False when `is_due` asked for an end.

    Raises LeaseLost, TransientError, PermanentError.
    """
    collection = collection_name("chunks", embedder.fingerprint)
    vectors.ensure_collection(collection, embedder.dimension)
    KnowledgeBase.objects.filter(pk=kb_id, embedding_fingerprint="").update(embedding_fingerprint=embedder.fingerprint)
    children = Chunk.objects.filter(document_id=lease.document_id, live=True, vector_id__isnull=False)
    pending = children.filter(vector_state=Chunk.VectorState.PENDING)
    total, left = max(1, children.count()), pending.count()
    size = LOCAL_BATCH if embedder.fingerprint.startswith("local-") else batch_size
    done = 0
    while batch := list(pending.order_by("chunk_index", "pk")[:size]):
        if done and is_due():
            return False
        _embed_batch(batch, embedder, vectors, collection)
        done += len(batch)
        left -= len(batch)
        with write_transaction():
            lease.commit(progress=progress(1 - max(0, left) / total), attempts=0, error="", error_code="")
            _mark([chunk.pk for chunk in batch], Chunk.VectorState.STORED)
    _compare(lease, vectors, collection)
    return True


def skip_vectors(lease: Lease) -> None:
    """Without an embedder: notes that these children have no vector and wait for none."""
    with write_transaction():
        lease.commit()
        Chunk.objects.filter(document_id=lease.document_id, live=True, vector_state=Chunk.VectorState.PENDING).update(
            vector_state=Chunk.VectorState.NONE
        )


def _embed_batch(batch: Sequence[Chunk], embedder: Embedder, vectors: VectorIndex, collection: str) -> None:
    texts = [indexed_text(chunk.heading_path, chunk.content) for chunk in batch]
    found = async_to_sync(embedder.embed)(texts, "passage")
    if len(found) != len(batch):
        raise TransientError(_("The embedding model returned too few vectors."), code="embedding_incomplete")
    rows = [
        VectorRow(
            id=chunk.pk if chunk.vector_id is None else chunk.vector_id,
            kb_id=chunk.knowledge_base_id,
            document_id=chunk.document_id,
            lang=chunk.lang,
            content_type=chunk.content_type,
            tags=tuple(chunk.tags),
            vector=vector,
        )
        for chunk, vector in zip(batch, found, strict=True)
    ]
    vectors.upsert(collection, rows)


def _compare(lease: Lease, vectors: VectorIndex, collection: str) -> None:
    stored = vectors.iter_ids(collection, lease.document_id)
    live = Chunk.objects.filter(document_id=lease.document_id, live=True, vector_id__isnull=False)
    wanted = {vector_id for vector_id in live.values_list("vector_id", flat=True) if vector_id is not None}
    lease.commit()
    if strays := stored - wanted:
        vectors.delete(collection, sorted(strays))
    if missing := wanted - stored:
        with write_transaction():
            lease.commit()
            _mark(sorted(missing), Chunk.VectorState.PENDING)
        raise TransientError(_("The vector store has lost rows."), code="vectors_missing")


def _mark(ids: Sequence[int], state: Chunk.VectorState) -> None:
    for start in range(0, len(ids), 500):
        Chunk.objects.filter(vector_id__in=ids[start : start + 500]).update(vector_state=state)
