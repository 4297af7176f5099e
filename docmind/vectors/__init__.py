"""Nearest-neighbour search in Milvus: Milvus Lite on loopback by default, a standalone server or a cluster otherwise.

Importing this package is cheap; the Milvus SDK (3 s, 150 MB) is loaded by the first call that needs a server.
"""

from docmind.vectors.filters import expression
from docmind.vectors.store import VectorStore, collection_name, get_vector_store
from docmind.vectors.types import VectorFilter, VectorHit, VectorRow

__all__ = [
    "VectorFilter",
    "VectorHit",
    "VectorRow",
    "VectorStore",
    "collection_name",
    "expression",
    "get_vector_store",
]
