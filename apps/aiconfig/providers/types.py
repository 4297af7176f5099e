"""What a chat model and an embedder are to the rest of DocMind.

A provider is one short module that turns these values into one vendor's calls and its errors into
TransientError or PermanentError. `registry` chooses the provider from settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]
EmbeddingKind = Literal["query", "passage"]
FinishReason = Literal["stop", "length", "cut"]
"""`cut`: the connection broke after text had been shown; what came stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPassage:
    """A passage as it stands in the prompt, numbered from 1: what a provider without a model answers from."""

    index: int
    text: str
    heading_path: str = ""
    """The headings above it, where the text does not hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One call of a chat model. `question` and `passages` are also contained in `messages`."""

    model: str
    messages: tuple[ChatMessage, ...]
    question: str
    passages: tuple[PromptPassage, ...] = ()
    temperature: float = 0.3
    max_output_tokens: int = 2048
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the answer; never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    """The next piece of a reasoning model's thinking; never part of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """The last item of every stream. Token counts are None where the vendor does not send them."""

    finish_reason: FinishReason = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None


ChatDelta = TextDelta | ThinkingDelta | StreamEnd


class ChatModel(Protocol):
    """A chat model. Closing the returned iterator closes the vendor's connection at once."""

    name: str
    """`none`, `dashscope`, `openai`."""
    is_generative: bool
    """False for the extractive provider: pages then say that no model is configured."""

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield deltas, then exactly one StreamEnd. Raises TransientError or PermanentError before the first delta."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    fingerprint: str
    """Provider, model and dimension, `local-multilingual-e5-small-384`: [a-z0-9-], names the vector collections."""
    dimension: int

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> list[list[float]]:
        """One vector of `dimension` floats a text, in order. Raises TransientError or PermanentError."""
        ...
