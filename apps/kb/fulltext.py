"""The full-text table kb_chunk_search: FTS5 on SQLite, InnoDB FULLTEXT on MySQL and MariaDB.

A row is the encoded terms (`docmind.text.encode_terms`) of one child chunk. The engines are asked for Boolean matches
only, in the order of ids, so that both give the same rows; nothing of a query but encoded terms reaches them.
Writes join the caller's transaction. InnoDB finds a row only after its commit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import connection
from django.db.models import TextField
from django.db.models.expressions import RawSQL

BATCH_ROWS = 500
_ENCODED_TERM = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRow:
    """A chunk that matched, with what BM25 needs of it; `term_count` is its length in terms."""

    chunk_id: int
    search_text: str
    term_count: int


def write_rows(rows: Iterable[tuple[int, str]]) -> None:
    """Stores (chunk id, encoded terms) pairs; a row that exists is replaced."""
    if connection.vendor == "sqlite":
        # The rowid is the chunk's id, because FTS5 has no index on its columns.
        statement = "INSERT OR REPLACE INTO kb_chunk_search (rowid, chunk_id, search_text) VALUES (%s, %s, %s)"
        parameters: Iterator[tuple[int | str, ...]] = ((chunk_id, chunk_id, text) for chunk_id, text in rows)
    else:
        statement = "REPLACE INTO kb_chunk_search (chunk_id, search_text) VALUES (%s, %s)"
        parameters = iter(rows)
    with connection.cursor() as cursor:
        while batch := list(islice(parameters, BATCH_ROWS)):
            cursor.executemany(statement, batch)


def delete_rows(chunk_ids: Iterable[int]) -> None:
    """Removes the rows of these chunks; ids without a row are passed over."""
    ids = iter(chunk_ids)
    with connection.cursor() as cursor:
        while batch := list(islice(ids, BATCH_ROWS)):
            cursor.execute(f"DELETE FROM kb_chunk_search WHERE {_id_column()} IN ({_slots(batch)})", batch)  # noqa: S608


def read_rows(chunk_ids: Sequence[int]) -> dict[int, str]:
    """The encoded terms of these chunks by id; at most BATCH_ROWS ids at a time."""
    if not chunk_ids:
        return {}
    column = _id_column()
    sql = f"SELECT {column}, search_text FROM kb_chunk_search WHERE {column} IN ({_slots(chunk_ids)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, list(chunk_ids))
        return dict(cursor.fetchall())


def row_ids(document_id: int) -> set[int]:
    """The chunks of a document, staged ones included, that have a row."""
    sql = f"SELECT c.id FROM kb_chunk c JOIN kb_chunk_search s ON s.{_id_column()} = c.id WHERE c.document_id = %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [document_id])
        return {chunk_id for (chunk_id,) in cursor.fetchall()}


def orphan_ids(limit: int = BATCH_ROWS) -> set[int]:
    """Rows whose chunk no longer exists, at most `limit` of them."""
    id_column = _id_column()
    sql = (
        f"SELECT s.{id_column} FROM kb_chunk_search s LEFT JOIN kb_chunk c ON c.id = s.{id_column}"  # noqa: S608
        f" WHERE c.id IS NULL LIMIT {int(limit)}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return {chunk_id for (chunk_id,) in cursor.fetchall()}


def search_text_expression() -> RawSQL:
    """An annotation for queries on Chunk: the chunk's encoded terms, None where it has no row."""
    sql = f"(SELECT s.search_text FROM kb_chunk_search s WHERE s.{_id_column()} = kb_chunk.id)"  # noqa: S608
    return RawSQL(sql, (), output_field=TextField())  # noqa: S611


def clear() -> None:
    """Removes every row."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_chunk_search")


def match(
    groups: Sequence[Sequence[str]],
    *,
    kb_ids: Collection[int],
    document_ids: Collection[int] | None = None,
    limit: int,
) -> list[SearchRow]:
    """The live chunks in scope that hold all terms of at least one group: the `limit` lowest ids, in their order.

    Raises ValueError for a term that is not encoded. An empty scope or no term gives nothing without a call.
    """
    if not all(_ENCODED_TERM.fullmatch(term) for group in groups for term in group):
        raise ValueError("Only encoded terms can be matched.")
    if not any(groups) or not kb_ids or (document_ids is not None and not document_ids):
        return []
    kbs = sorted(kb_ids)
    parameters: list[int | str] = [_expression([group for group in groups if group]), *kbs]
    in_documents = ""
    if document_ids is not None:
        documents = sorted(document_ids)
        in_documents = f" AND c.document_id IN ({_slots(documents)})"
        parameters += documents
    if connection.vendor == "sqlite":
        matches = "kb_chunk_search MATCH %s"  # FTS5 takes the table's name here, not an alias
    else:
        matches = "MATCH (search_text) AGAINST (%s IN BOOLEAN MODE)"
    id_column = f"kb_chunk_search.{_id_column()}"
    sql = (
        f"SELECT c.id, search_text, c.term_count FROM kb_chunk_search JOIN kb_chunk c ON c.id = {id_column}"  # noqa: S608
        f" WHERE {matches} AND c.live AND c.knowledge_base_id IN ({_slots(kbs)}){in_documents}"
        f" ORDER BY {id_column} LIMIT {int(limit)}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [
            SearchRow(chunk_id=chunk_id, search_text=search_text, term_count=term_count)
            for chunk_id, search_text, term_count in cursor.fetchall()
        ]


def _expression(groups: Sequence[Sequence[str]]) -> str:
    if connection.vendor == "sqlite":
        return " OR ".join(f"({' AND '.join(group)})" for group in groups)
    if len(groups) == 1:
        return " ".join(f"+{term}" for term in groups[0])
    return " ".join(f"({' '.join(f'+{term}' for term in group)})" if len(group) > 1 else group[0] for group in groups)


def _id_column() -> str:
    return "rowid" if connection.vendor == "sqlite" else "chunk_id"


def _slots(values: Collection[object]) -> str:
    return ", ".join(["%s"] * len(values))
