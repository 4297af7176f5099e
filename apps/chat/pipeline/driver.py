"""The driver: one question in, a stream of events out, in the order of the diagram.

    understanding → routing → retrieval → rerank → grader → start → token* → done

Without any evidence the answer says so, and no model is called. Cancelling the task that iterates is how a run is
stopped: the model's connection is closed at once and the last event is a `done` of outcome `stopped`, holding what was
produced. A model that fails before its first word ends the stream with `error`; one that breaks off later, with `done`
and a notice. No database statement stands inside the token loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from django.utils import translation
from django.utils.translation import gettext as _

from apps.aiconfig.providers.types import ChatDelta, StreamEnd, TextDelta, ThinkingDelta
from apps.chat.pipeline.draft import Draft, finish
from apps.chat.pipeline.events import Done, Error, Event, Evidence, Start, Token, Understanding
from apps.chat.pipeline.evidence import grade_event, rerank_event, retrieval_event, search_request, select_evidence
from apps.chat.pipeline.prompt import Prompt, assemble, prompt_text
from apps.chat.pipeline.routing import route
from apps.chat.pipeline.types import AskRequest, PipelineDeps, QueryClassification
from apps.chat.pipeline.understanding import understand
from docmind.errors import DocMindError, TransientError
from docmind.telemetry import get_logger

logger = get_logger(__name__)


async def answer(request: AskRequest, deps: PipelineDeps) -> AsyncGenerator[Event, None]:
    """Answer a question. Iterate in one task of its own, in a context of its own: the language is set for all of it."""
    translation.activate(request.interface_language)
    draft = begin(request, deps)
    try:
        classification = understand(request.question)
        understood = _understanding_event(request, classification)
        draft = replace(draft, classification=classification).noted(understood)
        yield understood

        routing = route(classification)
        draft = draft.noted(routing)
        yield routing

        result = await deps.search(search_request(request, classification), config=request.config)
        retrieval, rerank = retrieval_event(result), rerank_event(result)
        draft = replace(draft, result=result).noted(retrieval).noted(rerank)
        yield retrieval
        yield rerank

        grader = grade_event(classification.rewritten, result, request.config)
        draft = replace(draft, grader=grader).noted(grader)
        yield grader

        evidence = select_evidence(result, grader, request.config)
        prompt = assemble(request, evidence) if evidence.chunks else None
        draft = _with_evidence(draft, prompt, deps)
        yield _start_event(draft)

        if prompt is None:
            text = prompt_text("no_evidence", request.question)
            draft = replace(draft, pieces=(text,))
            yield Token(text=text)
        else:
            stream = cast("AsyncGenerator[ChatDelta, None]", deps.chat.stream(prompt.request))
            async with aclosing(stream):
                async for delta in stream:
                    match delta:
                        case TextDelta():
                            text = _whole_characters(delta.text)
                            draft = replace(draft, pieces=(*draft.pieces, text))
                            yield Token(text=text)
                        case ThinkingDelta():
                            pass
                        case StreamEnd():
                            draft = replace(draft, end=delta)
                    # A model that never waits would keep every other run waiting.
                    await asyncio.sleep(0)
    except asyncio.CancelledError:
        _take_back_cancellation()
        yield finish(draft, outcome="stopped", now=deps.clock())
    except DocMindError as error:
        yield _after_failure(draft, error, deps)
    else:
        yield _after_end(draft, deps)


def begin(request: AskRequest, deps: PipelineDeps) -> Draft:
    """The draft of a run that has not done anything yet."""
    return Draft(request=request, started_at=deps.clock(), is_generative=deps.chat.is_generative)


def stopped_early(request: AskRequest, deps: PipelineDeps) -> Done:
    """The `done` of a run that was stopped before its first step."""
    return finish(begin(request, deps), outcome="stopped", now=deps.clock())


def _understanding_event(request: AskRequest, classification: QueryClassification) -> Understanding:
    return Understanding(
        original=request.question,
        rewritten=classification.rewritten,
        intent=classification.intent,
        complexity=classification.complexity,
        specificity=classification.specificity,
        time_aware=classification.time_aware,
        memory_aware=classification.memory_aware,
        is_ambiguous=classification.is_ambiguous,
        scope=classification.scope,
        degraded=classification.degraded,
    )


def _with_evidence(draft: Draft, prompt: Prompt | None, deps: PipelineDeps) -> Draft:
    if prompt is None:
        return replace(draft, is_fallback=True)
    evidence: Evidence = prompt.evidence
    return replace(draft, evidence=evidence, model=prompt.request.model if deps.chat.is_generative else deps.chat.name)


def _start_event(draft: Draft) -> Start:
    return Start(
        conversation_id=draft.request.conversation_id,
        message_id=draft.request.message_id,
        model=draft.model,
        is_generative=draft.is_generative,
    )


def _after_end(draft: Draft, deps: PipelineDeps) -> Event:
    if not draft.text.strip():
        return Error(code="empty_answer", message=_("The model returned no text."), retryable=True)
    return finish(draft, outcome="done", now=deps.clock())


def _after_failure(draft: Draft, error: DocMindError, deps: PipelineDeps) -> Event:
    logger.warning("answer_failed", code=error.code, reason=error.message, had_text=bool(draft.pieces))
    if draft.pieces:
        return finish(replace(draft, end=StreamEnd(finish_reason="cut")), outcome="done", now=deps.clock())
    return Error(code=error.code, message=error.message, retryable=isinstance(error, TransientError))


def _whole_characters(text: str) -> str:
    """Without lone surrogates and NUL, which some models send and neither UTF-8 nor databases take."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\x00", "\ufffd")


def _take_back_cancellation() -> None:
    """The cancellation meant the work, not the task: it still has its last event to give."""
    if task := asyncio.current_task():
        task.uncancel()
