from __future__ import annotations

import json
import uuid

import pytest

from apps.chat.bus import Frame, InProcessBus
from apps.chat.pipeline.events import Error, Grader, Retrieval, Token
from apps.chat.pipeline.wire import camel_case, payload
from apps.chat.sse import KEEP_ALIVE, OPENING, encode, stream_run, to_frame
from apps.kb.retrieval.types import Degradation
from tests.chat.support import parse_sse


@pytest.mark.parametrize(
    ("name", "camel"), [("ms", "ms"), ("kb_entity_weak", "kbEntityWeak"), ("fromCache", "fromCache"), ("", "")]
)
def test_it_turns_names_into_camel_case(name: str, camel: str) -> None:
    assert camel_case(name) == camel


def test_keys_are_camel_case_at_every_depth() -> None:
    event = Retrieval(
        kb_count=1, web_count=0, memory_count=0, ms=1.5, degraded=(Degradation(part="a_b", reason="c_d"),)
    )
    assert payload(event) == {
        "kbCount": 1,
        "webCount": 0,
        "memoryCount": 0,
        "ms": 1.5,
        "degraded": [{"part": "a_b", "reason": "c_d"}],
    }


def test_a_frame_is_three_lines_and_an_empty_one() -> None:
    run_id = uuid.uuid4()
    raw = encode(to_frame(run_id, 7, Token(text="第一行\n\ndata: x\r\n")))
    assert raw.count(b"\n") == 4
    assert raw.startswith(b"id: 7\nevent: token\ndata: {")
    [event] = parse_sse(raw)
    assert event.data == {"runId": str(run_id), "text": "第一行\n\ndata: x\r\n"}


def test_done_and_error_end_a_run() -> None:
    grader = Grader(tier="HIGH", top_score=1, avg_score=1, lex_coverage=1, kb_entity_weak=False, reason="")
    assert not to_frame(uuid.uuid4(), 1, grader).final
    assert to_frame(uuid.uuid4(), 1, Error(code="x", message="y", retryable=False)).final


async def test_it_keeps_proxies_awake_while_nothing_comes() -> None:
    bus, run_id = InProcessBus(), uuid.uuid4()
    await bus.open(run_id)
    stream = stream_run(bus, run_id, keep_alive_s=0.01)
    assert await anext(stream) == OPENING
    assert await anext(stream) == KEEP_ALIVE
    await bus.publish(run_id, Frame(seq=1, name="done", data="{}", final=True))
    assert b"".join([part async for part in stream]).endswith(b"id: 1\nevent: done\ndata: {}\n\n")


async def test_a_lost_run_ends_with_an_error_behind_what_was_received() -> None:
    raw = b"".join([part async for part in stream_run(InProcessBus(), uuid.uuid4(), after=4)])
    [event] = parse_sse(raw)
    assert (event.id, event.name, event.data["code"]) == (5, "error", "run_lost")
    assert json.dumps(event.data)
