"""One connection to a Milvus server: the calls DocMind makes, with a deadline each and foreign errors translated.

This is the only module that imports the Milvus SDK, which takes 3 s and 150 MB; `docmind.vectors.store` loads it when a
server is first needed. A connection may be used by many threads, but not by a forked child.

Consistency. Reads that decide what is repaired or counted are Strong: they wait until the server has applied every
write (up to 0.4 s on Milvus 2.3). Search and fetch are Session: they see all rows that this process has written, and
what others wrote as soon as the server has applied it, without waiting. (Bounded costs the same and does not show a
process its own last rows.) Deletions carry no timestamp on Milvus 2.3: a deleted row may be found for another 0.4 s,
unless a Strong read came between. Milvus Lite applies everything at once.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import grpc
from django.utils.translation import gettext as _
from pymilvus import DataType, MilvusClient, MilvusException
from pymilvus.exceptions import ConnectError, MilvusUnavailableException

from docmind.errors import DocMindError
from docmind.vectors.errors import (
    CollectionMissingError,
    CollectionNotLoadedError,
    VectorStoreRejectedError,
    VectorStoreUnavailableError,
)
from docmind.vectors.types import CONTENT_TYPE_LIMIT_BYTES, LANG_LIMIT_BYTES, TAG_LIMIT, TAG_LIMIT_BYTES

Row = dict[str, Any]

logging.getLogger("pymilvus").setLevel(
    logging.CRITICAL
)  # importing it has undone the settings; errors are raised anyway

_GRPC_OPTIONS = {
    # A restarted server is found by the next attempt: channels do not share what others have seen fail.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
}
_HNSW = {"M": 16, "efConstruction": 200}
_EF_SEARCH_MINIMUM = 128
_ITERATOR_BATCH_ROWS = 8_000

_COLLECTION_NOT_FOUND = 100
_NOT_LOADED_CODES = frozenset({101, 103})
_NOT_LOADED_WORDS = ("not loaded", "not fully loaded", "not found in memory", "call load()")
_REJECTED_CODES = frozenset({6, *range(1100, 1200), *range(1400, 1500), *range(1800, 1900)})
_REJECTED_WORDS = (
    "cannot parse expression",
    "dimension mismatch",
    "should divide the dim",
    "expected dim",
    "core dimension",
    "is not a number",
    "invalid max query result window",
    "auth check failure",
)
_REJECTED_STATUSES = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)


def _is_rejection(error: MilvusException) -> bool:
    refused_by_the_sdk = type(error) not in (MilvusException, ConnectError, MilvusUnavailableException)
    text = str(error.message).lower()
    return (
        error.is_input_error
        or refused_by_the_sdk
        or error.code in _REJECTED_CODES
        or any(words in text for words in _REJECTED_WORDS)
    )


def translate(error: MilvusException | grpc.RpcError) -> DocMindError:
    """The error in DocMind's words. What is not known to be the caller's fault is worth another try."""
    unavailable = VectorStoreUnavailableError(_("The vector store does not answer at the moment."))
    rejected = VectorStoreRejectedError(_("The vector store refused the request."))
    if isinstance(error, grpc.RpcError):
        return rejected if error.code() in _REJECTED_STATUSES else unavailable
    if error.code == _COLLECTION_NOT_FOUND:
        return CollectionMissingError(_("The vector collection does not exist."))
    text = str(error.message).lower()
    if error.code in _NOT_LOADED_CODES or any(words in text for words in _NOT_LOADED_WORDS):
        return CollectionNotLoadedError(_("The vector store is still loading."))
    return rejected if _is_rejection(error) else unavailable


class Connection:
    """A channel of its own to one server. Every method raises the errors of `docmind.vectors.errors`."""

    def __init__(self, uri: str, token: str, timeout_s: float) -> None:
        try:
            self._client = MilvusClient(
                uri=uri, token=token, timeout=timeout_s, dedicated=True, grpc_options=_GRPC_OPTIONS
            )
        except (MilvusException, grpc.RpcError) as error:
            raise translate(error) from error

    def _call(self, method: str, *args: Any, timeout_s: float, **options: Any) -> Any:
        try:
            return getattr(self._client, method)(*args, timeout=timeout_s, **options)
        except (MilvusException, grpc.RpcError) as error:
            raise translate(error) from error

    def close(self) -> None:
        self._client.close()

    def server_version(self, *, timeout_s: float) -> str:
        return str(self._call("get_server_version", timeout_s=timeout_s))

    def exists(self, name: str, *, timeout_s: float) -> bool:
        return bool(self._call("has_collection", name, timeout_s=timeout_s))

    def dimension(self, name: str, *, timeout_s: float) -> int:
        fields = self._call("describe_collection", name, timeout_s=timeout_s)["fields"]
        return next(int(field["params"]["dim"]) for field in fields if field["name"] == "vector")

    def create(self, name: str, dimension: int, *, timeout_s: float) -> None:
        """Create collection and index where they are missing; another process may be doing the same."""
        if not self.exists(name, timeout_s=timeout_s):
            try:
                self._call(
                    "create_collection",
                    name,
                    schema=self._schema(dimension),
                    consistency_level="Session",
                    timeout_s=timeout_s,
                )
            except DocMindError:
                if not self.exists(name, timeout_s=timeout_s):
                    raise
        if not self._call("list_indexes", name, timeout_s=timeout_s):
            index = self._client.prepare_index_params()
            index.add_index("vector", index_type="HNSW", metric_type="COSINE", params=_HNSW)
            try:
                self._call("create_index", name, index, timeout_s=timeout_s)
            except DocMindError:
                if not self._call("list_indexes", name, timeout_s=timeout_s):
                    raise

    def _schema(self, dimension: int) -> Any:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("kb_id", DataType.INT64)
        schema.add_field("document_id", DataType.INT64)
        schema.add_field("lang", DataType.VARCHAR, max_length=LANG_LIMIT_BYTES)
        schema.add_field("content_type", DataType.VARCHAR, max_length=CONTENT_TYPE_LIMIT_BYTES)
        schema.add_field(
            "tags",
            DataType.ARRAY,
            element_type=DataType.VARCHAR,
            max_capacity=TAG_LIMIT,
            max_length=TAG_LIMIT_BYTES,
        )
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        return schema

    def load(self, name: str, *, timeout_s: float) -> None:
        """Bring the collection into the server's memory; returns at once where it is there."""
        self._call("load_collection", name, timeout_s=timeout_s)

    def drop(self, name: str, *, timeout_s: float) -> None:
        self._call("drop_collection", name, timeout_s=timeout_s)

    def upsert(self, name: str, rows: list[Row], *, timeout_s: float) -> None:
        self._call("upsert", name, rows, timeout_s=timeout_s)

    def delete(self, name: str, condition: str, *, timeout_s: float) -> None:
        """`condition` names primary keys: those the server deletes without a read that could miss fresh rows."""
        self._call("delete", name, filter=condition, timeout_s=timeout_s)

    def count(self, name: str, condition: str, *, timeout_s: float) -> int:
        rows = self._call(
            "query",
            name,
            filter=condition,
            output_fields=["count(*)"],
            consistency_level="Strong",
            timeout_s=timeout_s,
        )
        return int(rows[0]["count(*)"])

    def ids(self, name: str, condition: str, *, timeout_s: float) -> set[int]:
        """All ids that match, however many; each page has `timeout_s`."""
        found: set[int] = set()
        iterator = self._call(
            "query_iterator",
            name,
            batch_size=_ITERATOR_BATCH_ROWS,
            filter=condition,
            output_fields=["id"],
            consistency_level="Strong",
            timeout_s=timeout_s,
        )
        try:
            with contextlib.closing(iterator):
                while page := iterator.next():
                    found.update(int(row["id"]) for row in page)
        except (MilvusException, grpc.RpcError) as error:
            raise translate(error) from error
        return found

    def rows(self, name: str, condition: str, fields: Sequence[str], *, timeout_s: float) -> list[Row]:
        return list(
            self._call(
                "query",
                name,
                filter=condition,
                output_fields=list(fields),
                consistency_level="Session",
                timeout_s=timeout_s,
            )
        )

    def search(
        self,
        name: str,
        vectors: list[list[float]],
        condition: str,
        top_k: int,
        fields: Sequence[str],
        *,
        timeout_s: float,
    ) -> list[list[Row]]:
        """One list of hits a vector, best first; a hit has `id`, `distance` and `entity` with the fields."""
        found = self._call(
            "search",
            name,
            data=vectors,
            anns_field="vector",
            filter=condition,
            limit=top_k,
            output_fields=list(fields),
            search_params={"metric_type": "COSINE", "params": {"ef": max(_EF_SEARCH_MINIMUM, 2 * top_k)}},
            consistency_level="Session",
            timeout_s=timeout_s,
        )
        return [list(hits) for hits in found]
