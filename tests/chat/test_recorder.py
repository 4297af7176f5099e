"""The row is the fold of what was streamed."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from apps.chat.models import Message
from apps.chat.pipeline.driver import answer
from apps.chat.pipeline.events import Error, Event, Token
from apps.chat.pipeline.wire import payload
from apps.chat.recorder import MessageState, Progress, fold, record_final, record_progress
from apps.chat.services import begin_turn
from apps.kb.access import resolve_scope
from apps.rbac.models import User
from tests.chat.support import QUESTION, ask_request, deps_of


async def events_of_a_run() -> list[Event]:
    return [event async for event in answer(ask_request(), deps_of())]


def fold_all(events: list[Event]) -> MessageState:
    state = MessageState()
    for event in events:
        state = fold(state, event)
    return state


async def test_it_folds_the_very_payloads_that_were_streamed() -> None:
    events = await events_of_a_run()
    state, done = fold_all(events), payload(events[-1])
    assert state.status == "done"
    assert state.content == "".join(event.text for event in events if isinstance(event, Token))
    assert state.sources == done["sources"]
    assert state.citations == done["citations"]
    assert state.agent_trace == done["agentTrace"]
    assert state.retrieval_log == done["retrievalLog"]
    assert state.citation_coverage == done["citationCoverage"]
    assert state.confidence_score == done["confidenceScore"]
    assert state.intent == done["intentType"]
    assert state.input_tokens == done["usage"]["inputTokens"]
    assert state.response_time_ms == done["responseTime"]


async def test_its_trace_so_far_is_the_one_that_done_will_carry() -> None:
    events = await events_of_a_run()
    assert fold_all(events[:-1]).agent_trace == fold_all(events).agent_trace


async def test_it_keeps_text_and_trace_of_a_run_that_failed() -> None:
    events = await events_of_a_run()
    state = fold_all([*events[:-2], Error(code="rate_limited", message="busy", retryable=True)])
    assert (state.status, state.error_code) == ("failed", "rate_limited")
    assert state.content.startswith("默认端口")
    assert len(state.agent_trace) == 5


@pytest.fixture
def message(user: User) -> Message:
    turn = begin_turn(user, scope=resolve_scope(user), question=QUESTION, process_id="test:1")
    return Message.objects.get(pk=turn.message_id)


def test_it_writes_every_column_of_the_state(message: Message) -> None:
    state = MessageState(
        status="done",
        content="端口是 8080。[1]",
        sources=[{"index": 1}],
        citations=[{"index": 1}],
        agent_trace=[{"event": "routing"}],
        retrieval_log={"kb": {"kept": 1}},
        confidence_score=0.5,
        confidence_band="LOW",
        citation_coverage=1.0,
        invalid_refs=2,
        is_fallback=True,
        intent="LOOKUP",
        model="qwen-plus",
        input_tokens=1,
        output_tokens=2,
        response_time_ms=3,
        error_code="x",
    )
    record_final(message.pk, state)
    row = Message.objects.filter(pk=message.pk).values(*asdict(state)).get()
    assert row == asdict(state)


def test_it_writes_progress_with_a_heartbeat(message: Message) -> None:
    before = message.heartbeat_at
    record_progress([Progress(message_id=message.pk, content="默认")])
    message.refresh_from_db()
    assert (message.content, message.status) == ("默认", "streaming")
    assert before is not None
    assert message.heartbeat_at is not None
    assert message.heartbeat_at > before


def test_a_late_heartbeat_changes_nothing_on_a_finished_row(message: Message) -> None:
    record_final(message.pk, MessageState(status="done", content="whole"))
    record_progress([Progress(message_id=message.pk, content="wh")])
    message.refresh_from_db()
    assert (message.content, message.status) == ("whole", "done")
