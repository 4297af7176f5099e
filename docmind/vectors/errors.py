"""How the vector store fails, in DocMind's two kinds."""

from __future__ import annotations

from docmind.errors import PermanentError, TransientError


class VectorStoreUnavailableError(TransientError):
    """The server cannot be reached, is late or is not ready."""

    default_code = "vector_store_unavailable"


class CollectionNotLoadedError(VectorStoreUnavailableError):
    """The collection exists but is not in the server's memory: it must be loaded, then the call works."""


class VectorStoreRejectedError(PermanentError):
    """The server understood the request and refuses it."""

    default_code = "vector_store_rejected"


class CollectionMissingError(VectorStoreRejectedError):
    """No collection of that name."""

    default_code = "vector_collection_missing"
