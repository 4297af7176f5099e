"""The values that pass between the steps of answering. All frozen: a step returns new ones."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from apps.aiconfig.providers.types import ChatModel
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import RetrievalResult, SearchRequest, Specificity
from apps.rbac.scope import AccessScope

Intent = Literal["HOW_TO", "TROUBLESHOOTING", "COMPARISON", "SUMMARY", "DEFINITION", "LOOKUP", "GENERAL"]
Complexity = Literal["SIMPLE", "MEDIUM", "COMPLEX"]
Scope = Literal["KNOWLEDGE_QUERY", "META_CONVERSATION", "CHITCHAT", "KB_META", "USER_MEMORY", "OUT_OF_SCOPE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """One question with everything that its run needs; nothing is read from the request's context later.

    `scope` is narrowed to the chosen knowledge bases. `interface_language` is the language of notices (a Django
    language code); the answer itself follows the question.
    """

    run_id: uuid.UUID
    conversation_id: int
    message_id: int
    question: str
    scope: AccessScope
    config: ConfigSnapshot
    history: tuple[HistoryMessage, ...] = ()
    document_ids: frozenset[int] | None = None
    interface_language: str = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryClassification:
    """What understanding says about a question: ten fields, the query in the other language, and how it came about."""

    rewritten: str
    intent: Intent
    complexity: Complexity
    specificity: Specificity
    time_aware: bool
    memory_aware: bool
    is_ambiguous: bool
    scope: Scope
    scope_confidence: float
    memory_write_hints: tuple[str, ...] = ()
    translated: str = ""
    degraded: str = ""
    """Why no model took part; empty where one did."""


class Search(Protocol):
    """`apps.kb.retrieval.search.search` with its clients bound."""

    def __call__(self, request: SearchRequest, *, config: ConfigSnapshot) -> Awaitable[RetrievalResult]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDeps:
    """The clients that a run works with. `clock` counts seconds from any zero."""

    chat: ChatModel
    search: Search
    clock: Callable[[], float] = time.monotonic
