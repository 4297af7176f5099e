"""The values that pass between the steps of retrieval. All frozen: a step returns new ones.

Stages of a passage: a search yields `Candidate`s (ids and ranks), fusion merges them, the rows are loaded into
`RetrievedChunk`s, and every later step replaces those by changed copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from apps.rbac.scope import AccessScope

SearchMode = Literal["hybrid", "vector", "keyword"]
Specificity = Literal["PRECISE", "NORMAL", "FUZZY"]
SourceKind = Literal["kb", "web"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is searched, for whom. `scope` bounds every step; `document_ids` narrows further.

    `fit_prompt`: the passages together keep to the prompt's token budget; without it all of `top_k` come.
    """

    query: str
    scope: AccessScope
    mode: SearchMode = "hybrid"
    specificity: Specificity = "NORMAL"
    document_ids: frozenset[int] | None = None
    top_k: int | None = None
    fit_prompt: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One hit of one search. `score` is on that search's own scale: BM25, or cosine.

    `exact`: it holds an identifier of the query as written there.
    """

    chunk_id: int
    score: float
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedCandidate:
    """A candidate after fusion, with its 1-based rank and score in each search that found it."""

    chunk_id: int
    score: float
    vector_rank: int | None = None
    vector_score: float | None = None
    keyword_rank: int | None = None
    keyword_score: float | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedChunk:
    """A passage on its way into the prompt.

    `content` is what the prompt will show (the child, later its parent, later a window of it); `child_content`,
    `child_start` and `child_end` always describe the child that was hit: citations lead there.
    Offsets are characters in the document's Markdown.
    """

    chunk_id: int | None
    kind: SourceKind
    content: str
    child_content: str
    knowledge_base_id: int | None
    document_id: int | None
    document_name: str
    heading_path: str
    page: int | None
    start_char: int
    end_char: int
    child_start: int
    child_end: int
    child_terms: str
    """Heading path and child in encoded terms, as in the search table; empty where they are not stored."""
    lang: str
    content_type: str
    parent_chunk_id: int | None = None
    vector_id: int | None = None
    url: str = ""
    fused: FusedCandidate | None = None
    rerank_score: float = 0.0

    @property
    def dedupe_key(self) -> str:
        """The chunk's id, else a fingerprint of its text."""
        if self.chunk_id is not None:
            return f"chunk:{self.chunk_id}"
        return "text:" + hashlib.sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentPassage:
    """The wider passage around a hit."""

    content: str
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedChunks:
    """The rows of the candidates, in their order, and the parents of those that have one, by id."""

    chunks: tuple[RetrievedChunk, ...]
    parents: Mapping[int, ParentPassage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """Something fell back: `part` (vector, keyword, embedding, rerank …) and a reason a person can read."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTiming:
    stage: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalResult:
    """What retrieval found, best first, and how. `candidates` counts what reached the reranker."""

    chunks: tuple[RetrievedChunk, ...]
    candidates: int
    rerank_model: str
    degraded: tuple[Degradation, ...]
    timings: tuple[StageTiming, ...]

    @property
    def top_score(self) -> float:
        return max((chunk.rerank_score for chunk in self.chunks), default=0.0)
