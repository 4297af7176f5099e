"""What a run has so far, as one frozen value that the driver replaces step by step, and the `Done` it amounts to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from apps.aiconfig.providers.types import StreamEnd
from apps.chat.pipeline.citations import ParsedCitations, confidence_of, parse_citations
from apps.chat.pipeline.events import Done, Event, Evidence, Grader, Outcome
from apps.chat.pipeline.evidence import citation_of, sources_of
from apps.chat.pipeline.types import AskRequest, QueryClassification
from apps.chat.pipeline.wire import event_name, payload
from apps.kb.retrieval.types import RetrievalResult

NO_EVIDENCE = Evidence(chunks=(), tier="LOW", top_score=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Fields are None until their step has run. `started_at` is the clock's time, in seconds."""

    request: AskRequest
    started_at: float
    model: str = ""
    is_generative: bool = True
    classification: QueryClassification | None = None
    result: RetrievalResult | None = None
    grader: Grader | None = None
    evidence: Evidence = NO_EVIDENCE
    pieces: tuple[str, ...] = ()
    end: StreamEnd | None = None
    trace: tuple[dict[str, Any], ...] = ()
    is_fallback: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def noted(self, event: Event) -> Draft:
        """With the event in the trace."""
        return replace(self, trace=(*self.trace, {"event": event_name(event), **payload(event)}))


def finish(draft: Draft, *, outcome: Outcome, now: float) -> Done:
    """The last event of a run that ended well or was stopped; `now` is the clock's time."""
    text, evidence = draft.text, draft.evidence
    sources = sources_of(evidence)
    parsed = parse_citations(text, len(sources))
    coverage = None if draft.is_fallback else parsed.coverage
    # A stopped answer is not vouched for by evidence that it had not come to cite.
    vouched = bool(text) and (outcome == "done" or bool(parsed.indices))
    confidence = confidence_of(coverage, evidence.top_score if vouched else 0.0, draft.request.config)
    return Done(
        conversation_id=draft.request.conversation_id,
        message_id=draft.request.message_id,
        outcome=outcome,
        sources=sources,
        citations=tuple(citation_of(evidence, index) for index in parsed.indices),
        citation_coverage=None if coverage is None else round(coverage, 4),
        invalid_refs=parsed.invalid_refs,
        confidence_score=confidence.score,
        confidence_band=confidence.band,
        crag_grade=draft.grader.tier if draft.grader else None,
        is_fallback=draft.is_fallback,
        from_cache=False,
        is_emergency=False,
        scope_short_circuit=None,
        response_time=int((now - draft.started_at) * 1000),
        retrieval_log=_retrieval_log(draft, parsed),
        agent_trace=draft.trace,
        recommendations=(),
        intent_type=draft.classification.intent if draft.classification else "",
        usage=_usage(draft),
        notice=_notice(draft),
    )


def _retrieval_log(draft: Draft, parsed: ParsedCitations) -> dict[str, Any]:
    """How the evidence came about; numbers and reasons only, no text of any document."""
    result = draft.result
    if result is None:
        return {}
    ungrounded = draft.evidence.tier == "LOW" and bool(draft.evidence.chunks) and parsed.coverage == 0
    return {
        "kb": {"candidates": result.candidates, "kept": len(result.chunks), "shown": len(draft.evidence.chunks)},
        "web": {"candidates": 0, "kept": 0, "shown": 0},
        "grade": draft.grader.tier if draft.grader else None,
        "ungrounded": ungrounded,
        "rerank_model": result.rerank_model,
        "timings": [{"stage": timing.stage, "ms": round(timing.ms, 1)} for timing in result.timings],
        "degraded": [{"part": item.part, "reason": item.reason} for item in result.degraded],
    }


def _usage(draft: Draft) -> dict[str, Any]:
    return {
        "model": draft.model,
        "input_tokens": draft.end.input_tokens if draft.end else None,
        "output_tokens": draft.end.output_tokens if draft.end else None,
    }


def _notice(draft: Draft) -> str:
    """What the reader should know about this answer, in the interface's language."""
    notices = []
    if not draft.is_generative:
        notices.append(_("No chat model is configured: answers are put together from sentences of the documents."))
    if draft.end is not None and draft.end.finish_reason == "cut":
        notices.append(_("The connection to the model broke: the answer is incomplete."))
    if draft.end is not None and draft.end.finish_reason == "length":
        notices.append(_("The answer reached its longest allowed length and may be incomplete."))
    return " ".join(notices)
