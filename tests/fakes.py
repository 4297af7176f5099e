"""Doubles of the outside world: a deterministic embedder and a scripted chat model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncIterator, Sequence

from apps.aiconfig.providers.types import ChatDelta, ChatRequest, EmbeddingKind, StreamEnd, TextDelta
from docmind.text import segment


class HashingEmbedder:
    """Unit vectors by feature hashing of terms: texts that share words are near, the same text is always the same."""

    fingerprint = "test-hashing-64"
    dimension = 64

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        self.calls.append(tuple(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimension
        for term in segment(text) or [text]:
            digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
            vector[digest[0] % self.dimension] += 1.0 if digest[1] % 2 else -1.0
        norm = math.sqrt(sum(value * value for value in vector))
        return [value / norm for value in vector] if norm else [1.0, *[0.0] * (self.dimension - 1)]


class ScriptedChatModel:
    """Plays a list of pieces; an exception among them is raised at its place."""

    name = "scripted"
    is_generative = True

    def __init__(self, pieces: Sequence[str | Exception]) -> None:
        self.pieces = pieces
        self.requests: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        self.requests.append(request)
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield TextDelta(text=piece)
        yield StreamEnd(input_tokens=10, output_tokens=len(self.pieces))
