"""Taking documents and chunks out of the database: rows, search rows and statistics in the caller's transaction.

Vectors and files are not transactional; they go after the commit. What a failure leaves of them is never returned by
a search, because a vector counts only with a live row.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from apps.kb import fulltext, term_stats
from apps.kb.ingestion.term_batches import terms_of
from apps.kb.ingestion.types import VectorIndex
from apps.kb.models import Chunk, Document, KnowledgeBase
from docmind.errors import DocMindError
from docmind.telemetry import get_logger

logger = get_logger(__name__)

BATCH_ROWS = 500


def remove_document(document: Document) -> None:
    """Removes a document's row and all its chunks, staged ones too. The knowledge base's row must be locked."""
    live = list(
        Chunk.objects.filter(document=document, live=True, vector_id__isnull=False).values_list("pk", flat=True)
    )
    term_stats.remove(document.knowledge_base_id, terms_of(live))
    remove_chunks_of("document_id", document.pk)
    document.delete()


def remove_knowledge_base(knowledge_base: KnowledgeBase) -> None:
    """Removes a knowledge base with everything in it."""
    remove_chunks_of("knowledge_base_id", knowledge_base.pk)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_term_stat WHERE knowledge_base_id = %s", [knowledge_base.pk])
    knowledge_base.delete()


def remove_chunks_of(column: str, key: int) -> None:
    """Removes the chunk rows and search rows whose `column` (`document_id`, `knowledge_base_id`) is `key`."""
    children = Chunk.objects.filter(**{column: key}, vector_id__isnull=False)
    fulltext.delete_rows(list(children.values_list("pk", flat=True)))
    with connection.cursor() as cursor:
        # Children first: InnoDB checks the reference to the parent row by row.
        cursor.execute(f"DELETE FROM kb_chunk WHERE {column} = %s AND parent_chunk_id IS NOT NULL", [key])  # noqa: S608
        cursor.execute(f"DELETE FROM kb_chunk WHERE {column} = %s", [key])  # noqa: S608


def remove_chunks(children: Sequence[int], parents: Sequence[int]) -> None:
    """Removes these chunks and the children's search rows. No other row may refer to the parents any more."""
    fulltext.delete_rows(children)
    with connection.cursor() as cursor:
        # Never both in one statement: InnoDB checks the reference to the parent row by row.
        for ids in (children, parents):
            for start in range(0, len(ids), BATCH_ROWS):
                batch = ids[start : start + BATCH_ROWS]
                slots = ", ".join(["%s"] * len(batch))
                cursor.execute(f"DELETE FROM kb_chunk WHERE id IN ({slots})", batch)  # noqa: S608


def discard_staged(document_id: int, *, keep_revision: int | None = None) -> int:
    """Removes rows that were staged and never published, but for those of one revision. Returns how many."""
    staged = Chunk.objects.filter(document_id=document_id, live=False)
    if keep_revision is not None:
        staged = staged.exclude(revision=keep_revision)
    children = list(staged.filter(vector_id__isnull=False).values_list("pk", flat=True))
    parents = list(staged.filter(vector_id__isnull=True).values_list("pk", flat=True))
    remove_chunks(children, parents)
    return len(children) + len(parents)


def forget_vectors(vectors: VectorIndex, collection: str, document_id: int) -> None:
    """Removes a deleted document's vectors; a failure is logged, orphaned vectors are never returned."""
    try:
        vectors.delete_by_document(collection, document_id)
    except DocMindError as error:
        logger.warning("vectors_not_removed", document=document_id, collection=collection, reason=error.code)
