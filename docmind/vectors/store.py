"""The vector store as the rest of DocMind sees it: typed rows in, typed hits out, two kinds of error.

Asynchronous calls run the synchronous client in the pool for blocking work: it then does not matter which event loop
asks, and decoding thousands of floats never holds a loop up. What happens when the server restarts or the process forks
is in `docmind.vectors.reconnecting`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _

from docmind.executor import run_blocking
from docmind.vectors.errors import CollectionMissingError, VectorStoreUnavailableError
from docmind.vectors.filters import expression, one_of
from docmind.vectors.reconnecting import ReconnectingClient
from docmind.vectors.rows import check_dimension, check_vector, record
from docmind.vectors.types import VectorFilter, VectorHit, VectorRow

if TYPE_CHECKING:
    from docmind.vectors.connection import Connection

T = TypeVar("T")

WRITE_TIMEOUT_S = 30.0
SCHEMA_TIMEOUT_S = 60.0
"""Creating and loading: a server takes 3 s for an empty collection and longer for a large one."""
ABANDON_AFTER_S = 1.0
"""How long after its deadline an asynchronous call is given up, although its thread has not come back."""
UPSERT_BATCH_ROWS = 500
FETCH_BATCH_IDS = 1_000
DELETE_BATCH_IDS = 5_000
NAME_LIMIT_CHARS = 200


class VectorStore:
    """Collections of vectors on one server. Safe for threads, event loops and forks; opens no connection by itself."""

    def __init__(self, uri: str, token: str = "", timeout_s: float = 5.0) -> None:
        self._timeout_s = timeout_s
        self._client = ReconnectingClient(uri, token, timeout_s)
        self._run = self._client.run
        self._dimensions: dict[str, int] = {}

    # --- Collections ---------------------------------------------------------------------------------------------

    def ensure_collection(self, name: str, dimension: int) -> None:
        """Create and load the collection where it is missing. Several processes may do so at once.

        Raises PermanentError where a collection of that name has vectors of another length.
        """

        def ensure(connection: Connection) -> None:
            connection.create(name, dimension, timeout_s=SCHEMA_TIMEOUT_S)
            connection.load(name, timeout_s=SCHEMA_TIMEOUT_S)

        self._run(ensure)
        self._dimensions.pop(name, None)
        check_dimension(stored=self._run(partial(self._dimension, name)), given=dimension)

    def drop_collection(self, name: str) -> None:
        """Remove the collection with all it holds; one that does not exist is fine."""
        self._dimensions.pop(name, None)
        self._run(lambda connection: connection.drop(name, timeout_s=SCHEMA_TIMEOUT_S))

    def ping(self) -> str:
        """The server's version. Raises TransientError where it cannot be reached."""
        return self._run(lambda connection: connection.server_version(timeout_s=self._timeout_s))

    def close(self) -> None:
        """Give the connection back; the next call opens a new one."""
        self._client.close()

    # --- Rows ----------------------------------------------------------------------------------------------------

    def upsert(self, name: str, rows: Iterable[VectorRow]) -> None:
        """Write rows, replacing those with the same ids, in batches: after an error some may have been written."""
        for batch in _batches(rows, UPSERT_BATCH_ROWS):
            dimension = self._run(partial(self._dimension, name))
            records = [record(row, dimension) for row in batch]
            self._run(partial(self._upsert_batch, name, records))

    def _upsert_batch(self, name: str, records: list[dict[str, Any]], connection: Connection) -> None:
        connection.upsert(name, records, timeout_s=WRITE_TIMEOUT_S)

    def delete(self, name: str, ids: Iterable[int]) -> None:
        """Delete rows; ids that are not stored and a collection that does not exist are fine."""
        for batch in _batches(sorted(set(ids)), DELETE_BATCH_IDS):
            self._delete_batch(name, one_of("id", batch))

    def _delete_batch(self, name: str, condition: str) -> None:
        try:
            self._run(lambda connection: connection.delete(name, condition, timeout_s=WRITE_TIMEOUT_S), name)
        except CollectionMissingError:
            return

    def delete_by_document(self, name: str, document_id: int) -> None:
        """Delete all rows of a document, also those written a moment ago."""
        self.delete(name, self.iter_ids(name, document_id))

    def count(self, name: str, kb_ids: Collection[int] | None = None) -> int:
        """Rows stored, in all or in some knowledge bases; 0 where there is no collection. Sees every write."""
        if kb_ids is not None and not kb_ids:
            return 0
        condition = "" if kb_ids is None else one_of("kb_id", set(kb_ids))
        try:
            return self._run(lambda connection: connection.count(name, condition, timeout_s=self._timeout_s), name)
        except CollectionMissingError:
            return 0

    def iter_ids(self, name: str, document_id: int) -> set[int]:
        """The ids of a document's rows; empty where there is no collection. Sees every write."""
        condition = one_of("document_id", [document_id])
        try:
            return self._run(lambda connection: connection.ids(name, condition, timeout_s=self._timeout_s), name)
        except CollectionMissingError:
            return set()

    def fetch(self, name: str, ids: Iterable[int]) -> dict[int, tuple[float, ...]]:
        """Stored vectors by id; those that are not stored are left out."""
        found: dict[int, tuple[float, ...]] = {}
        for batch in _batches(sorted(set(ids)), FETCH_BATCH_IDS):
            found |= self._fetch_batch(name, one_of("id", batch))
        return found

    def _fetch_batch(self, name: str, condition: str) -> dict[int, tuple[float, ...]]:
        try:
            rows = self._run(
                lambda connection: connection.rows(name, condition, ["id", "vector"], timeout_s=self._timeout_s), name
            )
        except CollectionMissingError:
            return {}
        return {int(row["id"]): tuple(map(float, row["vector"])) for row in rows}

    # --- Search --------------------------------------------------------------------------------------------------

    async def search(
        self,
        name: str,
        vectors: Sequence[Sequence[float]],
        *,
        filter: VectorFilter,
        top_k: int,
        with_vectors: bool = False,
        timeout_s: float | None = None,
    ) -> list[list[VectorHit]]:
        """The `top_k` nearest rows that pass the filter, best first, one list a query vector.

        Lists are empty where nothing passes or no collection exists. Raises TransientError where the server does not
        answer within `timeout_s` (the store's own when None) and PermanentError for vectors of the wrong length.
        """
        if not vectors or filter.matches_nothing or top_k <= 0:
            return [[] for _vector in vectors]
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        search = partial(
            self._search, name, vectors, expression(filter), top_k=top_k, with_vectors=with_vectors, timeout_s=limit_s
        )
        return await _within(limit_s, search)

    def _search(
        self,
        name: str,
        vectors: Sequence[Sequence[float]],
        condition: str,
        *,
        top_k: int,
        with_vectors: bool,
        timeout_s: float,
    ) -> list[list[VectorHit]]:
        fields = ["vector"] if with_vectors else ["id"]
        queries = [list(vector) for vector in vectors]
        try:
            dimension = self._run(partial(self._dimension, name))
            for query in queries:
                check_vector(query, dimension)
            found = self._run(
                lambda connection: connection.search(name, queries, condition, top_k, fields, timeout_s=timeout_s), name
            )
        except CollectionMissingError:
            return [[] for _vector in vectors]
        return [
            [
                VectorHit(
                    id=int(hit["id"]),
                    score=max(-1.0, min(1.0, float(hit["distance"]))),
                    vector=tuple(map(float, hit["entity"]["vector"])) if with_vectors else None,
                )
                for hit in hits
            ]
            for hits in found
        ]

    async def fetch_async(self, name: str, ids: Iterable[int]) -> dict[int, tuple[float, ...]]:
        """As `fetch`, off the event loop."""
        return await run_blocking(self.fetch, name, ids)

    # --- Connection ----------------------------------------------------------------------------------------------

    def _dimension(self, name: str, connection: Connection) -> int:
        if (dimension := self._dimensions.get(name)) is None:
            dimension = self._dimensions[name] = connection.dimension(name, timeout_s=self._timeout_s)
        return dimension


async def _within(limit_s: float, call: Callable[[], T]) -> T:
    try:
        async with asyncio.timeout(limit_s + ABANDON_AFTER_S):
            return await run_blocking(call)
    except TimeoutError:
        raise VectorStoreUnavailableError(_("The vector store does not answer at the moment.")) from None


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def collection_name(kind: str, fingerprint: str) -> str:
    """The collection for one kind of content (chunks, memory, cache) under one embedding fingerprint.

    Milvus allows letters, digits and underscores; a name that had to be cut ends in a digest of the whole.
    """
    name = re.sub(r"[^0-9A-Za-z_]", "_", f"{settings.VECTOR_NAMESPACE}_{kind}_{fingerprint}")
    if len(name) <= NAME_LIMIT_CHARS:
        return name
    digest = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    return f"{name[: NAME_LIMIT_CHARS - 17]}_{digest}"


@lru_cache(maxsize=8)
def _store(uri: str, token: str) -> VectorStore:
    return VectorStore(uri, token)


def get_vector_store() -> VectorStore:
    """The store that the settings name, one a process."""
    return _store(settings.VECTOR_URI, settings.MILVUS_TOKEN)
