"""The driver's event sequences, without database or web."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from apps.aiconfig.providers.types import ChatRequest, StreamEnd, TextDelta, ThinkingDelta
from apps.chat.pipeline.driver import answer
from apps.chat.pipeline.events import Done, Error, Event, Routing, Start, Token, Understanding
from apps.chat.pipeline.types import AskRequest, PipelineDeps
from apps.chat.pipeline.wire import event_name, payload
from apps.kb.retrieval.types import Degradation
from docmind.errors import PermanentError, TransientError
from tests.chat.support import ANSWER, PASSAGES, PacedChatModel, ScriptedSearch, ask_request, deps_of, found, passage
from tests.fakes import ScriptedChatModel

HEAD = ["understanding", "routing", "retrieval", "rerank", "grader"]


async def run(request: AskRequest, deps: PipelineDeps) -> list[Event]:
    async with aclosing(answer(request, deps)) as events:
        return [event async for event in events]


def names(events: list[Event]) -> list[str]:
    return [event_name(event) for event in events]


def done_of(events: list[Event]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def test_it_answers_in_the_order_of_the_diagram() -> None:
    events = await run(ask_request(), deps_of())
    assert names(events) == [*HEAD, "start", "token", "token", "token", "done"]
    done = done_of(events)
    assert done.outcome == "done"
    assert [source.id for source in done.sources] == [1, 2]
    assert [(citation.index, citation.document_id, citation.start) for citation in done.citations] == [
        (1, 101, 10),
        (2, 102, 20),
    ]
    assert done.citation_coverage == 1.0
    assert done.confidence_score == pytest.approx(0.9)
    assert done.confidence_band == "HIGH"
    assert done.crag_grade == "HIGH"
    assert done.usage == {"model": "qwen-plus", "input_tokens": 10, "output_tokens": 3}
    assert done.notice == ""
    assert [entry["event"] for entry in done.agent_trace] == HEAD


async def test_it_tells_that_rules_and_not_a_model_classified() -> None:
    events = await run(ask_request(), deps_of())
    understanding, routing = events[0], events[1]
    assert isinstance(understanding, Understanding)
    assert isinstance(routing, Routing)
    assert understanding.degraded
    assert understanding.specificity == "PRECISE"
    assert routing.mode == "RULE_PLANNER"
    assert routing.tools == ("doc_search", "keyword_search")


async def test_it_searches_within_the_scope_it_was_given() -> None:
    search = ScriptedSearch(found(*PASSAGES))
    request = ask_request(document_ids=frozenset({101}))
    await run(request, deps_of(search=search))
    [asked] = search.requests
    assert asked.scope is request.scope
    assert asked.document_ids == frozenset({101})


@pytest.mark.parametrize(
    ("question", "says"), [("火星基地的食堂几点开门？", "没有找到"), ("When does the canteen open?", "say nothing")]
)
async def test_it_says_so_without_evidence_and_calls_no_model(question: str, says: str) -> None:
    chat = ScriptedChatModel(["invented"])
    events = await run(ask_request(question), deps_of(chat, ScriptedSearch(found())))
    assert names(events) == [*HEAD, "start", "token", "done"]
    assert chat.requests == []
    token, done = events[-2], done_of(events)
    assert isinstance(token, Token)
    assert says in token.text
    assert done.is_fallback
    assert done.sources == ()
    assert (done.confidence_score, done.confidence_band, done.citation_coverage) == (0.0, "LOW", None)


async def test_it_uses_the_low_confidence_prompt_with_weak_evidence_and_still_cites() -> None:
    chat = ScriptedChatModel(["文档只提到了食堂的位置在一楼。[1]"])
    weak = found(passage(1, "食堂的位置在一楼。", score=0.1))
    events = await run(ask_request("火星基地几点开门？"), deps_of(chat, ScriptedSearch(weak)))
    assert "相关性较弱" in chat.requests[0].messages[0].content
    done = done_of(events)
    assert done.crag_grade == "LOW"
    assert not done.is_fallback
    assert [citation.index for citation in done.citations] == [1]


async def test_it_records_an_uncited_answer_over_weak_evidence_as_ungrounded() -> None:
    weak = found(passage(1, "食堂的位置在一楼。", score=0.1))
    events = await run(
        ask_request("火星基地几点开门？"), deps_of(ScriptedChatModel(["九点钟开门营业。"]), ScriptedSearch(weak))
    )
    done = done_of(events)
    assert done.retrieval_log["ungrounded"] is True
    assert done.confidence_score == 0.0


async def test_it_counts_citations_of_passages_that_are_not_there() -> None:
    events = await run(ask_request(), deps_of(ScriptedChatModel(["默认端口是 8080。[1] 其他都在别处写着。[9]"])))
    done = done_of(events)
    assert done.invalid_refs == 1
    assert done.citation_coverage == 0.5


async def test_it_ends_with_an_error_when_the_model_fails_before_its_first_word() -> None:
    failure = TransientError("The model is busy.", code="rate_limited")
    events = await run(ask_request(), deps_of(ScriptedChatModel([failure])))
    assert names(events) == [*HEAD, "start", "error"]
    assert events[-1] == Error(code="rate_limited", message="The model is busy.", retryable=True)


async def test_it_tells_permanent_failures_from_passing_ones() -> None:
    events = await run(ask_request(), deps_of(ScriptedChatModel([PermanentError("Wrong key.", code="bad_key")])))
    assert events[-1] == Error(code="bad_key", message="Wrong key.", retryable=False)


async def test_it_keeps_what_came_when_the_model_breaks_off() -> None:
    events = await run(ask_request(), deps_of(ScriptedChatModel([ANSWER[0] + ANSWER[1], TransientError("gone")])))
    assert names(events)[-2:] == ["token", "done"]
    done = done_of(events)
    assert done.outcome == "done"
    assert "incomplete" in done.notice
    assert [citation.index for citation in done.citations] == [1]


async def test_it_ends_with_an_error_when_the_search_fails() -> None:
    events = await run(ask_request(), deps_of(search=ScriptedSearch(TransientError("down", code="unavailable"))))
    assert names(events) == ["understanding", "routing", "error"]


async def test_it_ends_with_an_error_when_the_model_says_nothing() -> None:
    events = await run(ask_request(), deps_of(ScriptedChatModel([])))
    assert isinstance(events[-1], Error)
    assert events[-1].code == "empty_answer"


async def test_it_tells_what_fell_back() -> None:
    lost = Degradation(part="vector", reason="The vector store is down.")
    events = await run(ask_request(), deps_of(search=ScriptedSearch(found(*PASSAGES, degraded=(lost,)))))
    assert payload(events[2])["degraded"] == [{"part": "vector", "reason": "The vector store is down."}]


async def test_it_says_that_no_model_is_configured() -> None:
    chat = ScriptedChatModel(ANSWER)
    chat.is_generative = False
    events = await run(ask_request(), deps_of(chat))
    start = next(event for event in events if isinstance(event, Start))
    assert not start.is_generative
    assert start.model == "scripted"
    assert done_of(events).notice.startswith("No chat model")


async def test_it_keeps_a_reasoning_models_thinking_out_of_the_answer() -> None:
    class Thinker:
        name, is_generative = "thinker", True

        async def stream(self, request: ChatRequest) -> Any:
            yield ThinkingDelta(text="hmm")
            yield TextDelta(text="端口是 8080。[1]")
            yield StreamEnd(finish_reason="length")

    events = await run(ask_request(), deps_of(Thinker()))
    assert [event.text for event in events if isinstance(event, Token)] == ["端口是 8080。[1]"]
    assert "length" in done_of(events).notice


async def test_it_passes_on_whole_characters_only() -> None:
    events = await run(
        ask_request(), deps_of(ScriptedChatModel(["端口\ud83d", "\ude00是\x00 8080", "\ud83d\ude00。[1]"]))
    )
    text = "".join(event.text for event in events if isinstance(event, Token))
    assert text.encode() == "端口\ufffd\ufffd是\ufffd 8080😀。[1]".encode()


async def test_it_answers_a_stop_with_what_it_has_and_closes_the_model_at_once() -> None:
    chat = PacedChatModel(ANSWER)
    events: list[Event] = []

    async def consume() -> None:
        async for event in answer(ask_request(), deps_of(chat)):
            events.append(event)

    task = asyncio.create_task(consume())
    chat.allow(2)
    await chat.opened.wait()
    while names(events).count("token") < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    await task
    assert chat.closed.is_set()
    done = done_of(events)
    assert done.outcome == "stopped"
    assert [citation.index for citation in done.citations] == [1]
    assert len(done.sources) == 2


async def test_it_answers_a_stop_during_the_search() -> None:
    search = ScriptedSearch(found(*PASSAGES), gate=asyncio.Event())
    events: list[Event] = []

    async def consume() -> None:
        async for event in answer(ask_request(), deps_of(search=search)):
            events.append(event)

    task = asyncio.create_task(consume())
    while not search.requests:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    await task
    assert names(events) == ["understanding", "routing", "done"]
    assert done_of(events).outcome == "stopped"
    assert done_of(events).sources == ()
