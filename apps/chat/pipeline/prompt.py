"""The prompt of an answer: instructions, history, numbered passages as fenced data, the question.

Budget, in tokens as `docmind.text.estimate_tokens` counts them (never less than the model will):

1. the instructions, the passages (already chosen within `rag.context_max_tokens`) and the question come first; a
   question longer than half of the total keeps its head and its tail;
2. history gets what is left of the total, at most its own and the auxiliary ceiling, the latest messages first;
3. passages give way, last one first, only where the total is set lower than the sum of its parts.

Retrieved text is data: each passage stands in its own `<passage>` element, and nothing in it can close that element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from apps.aiconfig.providers.types import ChatMessage, ChatRequest, PromptPassage
from apps.aiconfig.snapshot import ConfigSnapshot
from apps.chat.pipeline.citations import strip_citations
from apps.chat.pipeline.events import Evidence
from apps.chat.pipeline.types import AskRequest, HistoryMessage
from apps.kb.retrieval.types import RetrievedChunk
from docmind.text import detect_language, estimate_tokens

_PROMPTS: Final = Path(__file__).parent / "prompts"
_FENCE_TAG: Final = re.compile(r"<(?=\s*/?\s*(?:passages?|question)\b)", re.IGNORECASE)
_MESSAGE_OVERHEAD_TOKENS: Final = 8
"""What a chat template adds around one message."""
_CUT_MARK: Final = " … "


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The request for the model, and the evidence that it really contains: `[n]` counts its passages."""

    request: ChatRequest
    evidence: Evidence
    estimated_tokens: int


def assemble(request: AskRequest, evidence: Evidence) -> Prompt:
    """Build the model's request from a question and at least one passage."""
    config = request.config
    template = "low_confidence" if evidence.tier == "LOW" else "answer"
    system = prompt_text(template, request.question)
    question = _cut_middle(request.question, config.prompt_budget_total_max_tokens // 2)
    fixed_tokens = _cost(system) + _cost(_user_text((), question))
    evidence = _fit(evidence, config.prompt_budget_total_max_tokens - fixed_tokens)
    user = _user_text(evidence.chunks, question)
    used_tokens = _cost(system) + _cost(user)
    history = _history(request.history, config, left_tokens=config.prompt_budget_total_max_tokens - used_tokens)
    messages = (
        ChatMessage(role="system", content=system),
        *history,
        ChatMessage(role="user", content=user),
    )
    return Prompt(
        request=ChatRequest(
            model=config.llm_chat_model,
            messages=messages,
            question=request.question,
            passages=tuple(
                PromptPassage(index=index, text=chunk.content, heading_path=chunk.heading_path)
                for index, chunk in enumerate(evidence.chunks, start=1)
            ),
            temperature=config.llm_temperature,
            max_output_tokens=config.llm_max_output_tokens,
            timeout_s=config.llm_timeout_s,
        ),
        evidence=evidence,
        estimated_tokens=used_tokens + sum(_cost(message.content) for message in history),
    )


def prompt_text(name: str, question: str) -> str:
    """The text `name` in the question's language: Chinese for a Chinese question, else English."""
    return _load(name, "zh" if detect_language(question) == "zh" else "en")


def fence_passage(index: int, chunk: RetrievedChunk) -> str:
    """One passage as it stands in the prompt."""
    where = " > ".join(part for part in (chunk.document_name, chunk.heading_path) if part)
    return f'<passage n="{index}" source="{_attribute(where)}">\n{_defuse(chunk.content)}\n</passage>'


def _user_text(chunks: tuple[RetrievedChunk, ...], question: str) -> str:
    passages = "\n".join(fence_passage(index, chunk) for index, chunk in enumerate(chunks, start=1))
    return f"<passages>\n{passages}\n</passages>\n\n<question>\n{_defuse(question)}\n</question>"


def _fit(evidence: Evidence, left_tokens: int) -> Evidence:
    chunks = evidence.chunks
    while len(chunks) > 1 and _passages_cost(chunks) > left_tokens:
        chunks = chunks[:-1]
    return replace(evidence, chunks=chunks)


def _passages_cost(chunks: tuple[RetrievedChunk, ...]) -> int:
    return sum(estimate_tokens(fence_passage(index, chunk)) for index, chunk in enumerate(chunks, start=1))


def _history(
    messages: tuple[HistoryMessage, ...], config: ConfigSnapshot, *, left_tokens: int
) -> tuple[ChatMessage, ...]:
    """The latest messages that fit, oldest first, each cut to its limit and without its old citations."""
    left_tokens = min(left_tokens, config.prompt_budget_history_max_tokens, config.prompt_budget_aux_max_tokens)
    kept: list[ChatMessage] = []
    latest = messages[-config.history_max_messages :] if config.history_max_messages else ()
    for message in reversed(latest):
        content = strip_citations(message.content).strip()[: config.history_max_chars]
        cost_tokens = _cost(content)
        if not content or cost_tokens > left_tokens:
            break
        left_tokens -= cost_tokens
        kept.append(ChatMessage(role=message.role, content=content))
    return tuple(reversed(kept))


def _cost(text: str) -> int:
    return estimate_tokens(text) + _MESSAGE_OVERHEAD_TOKENS


def _cut_middle(text: str, limit_tokens: int) -> str:
    """`text`, or its head and tail around a mark where it is over the limit."""
    keep = len(text)
    while estimate_tokens(text) > limit_tokens and keep > 2:
        keep = keep * 3 // 4
        text = text[: keep // 2] + _CUT_MARK + text[-(keep // 2) :]
    return text


def _defuse(text: str) -> str:
    return _FENCE_TAG.sub("‹", text)


def _attribute(text: str) -> str:
    return " ".join(text.replace('"', "'").replace("<", "‹").replace(">", "›").split())


@cache
def _load(name: str, language: str) -> str:
    return (_PROMPTS / f"{name}.{language}.txt").read_text(encoding="utf-8").strip()
