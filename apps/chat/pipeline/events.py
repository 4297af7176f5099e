"""What a run tells the world, as one typed union (design: Events).

Two consumers fold the same stream: the SSE encoder (`apps.chat.sse`) and the recorder (`apps.chat.recorder`).
Field names become camelCase keys on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from apps.kb.retrieval.types import Degradation, RetrievedChunk

PathMode = Literal["SELECTED_DOC", "RULE_PLANNER", "AGENTIC"]
GradeTier = Literal["HIGH", "AMBIGUOUS", "LOW"]
Band = Literal["HIGH", "MEDIUM", "LOW"]
Outcome = Literal["done", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    original: str
    rewritten: str
    intent: str
    complexity: str
    specificity: str
    time_aware: bool
    memory_aware: bool
    is_ambiguous: bool
    scope: str
    degraded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    mode: PathMode
    reason: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    kb_count: int
    web_count: int
    memory_count: int
    ms: float
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    candidates: int
    kept: int
    top_score: float
    model: str
    ms: float
    degraded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    tier: GradeTier
    top_score: float
    avg_score: float
    lex_coverage: float
    kb_entity_weak: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeShortCircuit:
    scope: str
    confidence: float
    tier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    conversation_id: int
    message_id: int
    model: str
    is_generative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A numbered passage as the reader sees it; `id` is the chunk's."""

    index: int
    id: int | None
    name: str
    page: int | None
    snippet: str
    kind: Literal["kb", "web"]
    heading_path: str
    document_id: int | None
    knowledge_base_id: int | None
    start: int
    end: int
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A `[n]` of the answer and the child passage it rests on; offsets in the document's Markdown."""

    index: int
    id: int | None
    name: str
    page: int | None
    document_id: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    conversation_id: int
    message_id: int
    outcome: Outcome
    sources: tuple[Source, ...]
    citations: tuple[Citation, ...]
    citation_coverage: float | None
    invalid_refs: int
    confidence_score: float
    confidence_band: Band
    crag_grade: GradeTier | None
    is_fallback: bool
    from_cache: bool
    is_emergency: bool
    scope_short_circuit: str | None
    response_time: int
    retrieval_log: dict[str, Any]
    agent_trace: tuple[dict[str, Any], ...]
    recommendations: tuple[dict[str, Any], ...]
    intent_type: str
    usage: dict[str, Any]
    notice: str = ""
    """Something the reader should know: no model configured, the answer was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    code: str
    message: str
    retryable: bool


Event = Understanding | Routing | Retrieval | Rerank | Grader | ScopeShortCircuit | Start | Token | Done | Error


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the answer may rest on: numbered as in the prompt, `chunks[i]` is `[i + 1]`."""

    chunks: tuple[RetrievedChunk, ...]
    tier: GradeTier
    top_score: float
