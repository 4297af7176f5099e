"""What both remote providers do, through their real SDKs, against their stand-ins."""

from __future__ import annotations

import asyncio

import pytest

from apps.aiconfig.providers.types import TextDelta
from docmind.errors import PermanentError, TransientError
from tests.aiconfig.conftest import API_KEY, RemoteChat, ask, collect, end_of, text_of, thinking_of
from tests.standins.script import Reply


async def test_it_streams_the_pieces_and_ends_with_usage(remote: RemoteChat) -> None:
    remote.server.script(Reply(pieces=("默认端口", "是 8000", "。[1]")))
    deltas = await collect(remote.model, ask())
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["默认端口", "是 8000", "。[1]"]
    end = end_of(deltas)
    assert end.finish_reason == "stop"
    assert end.input_tokens is not None
    assert end.input_tokens > 0
    assert end.output_tokens == 3


async def test_it_sends_model_messages_and_key(remote: RemoteChat) -> None:
    await collect(remote.model, ask("你好"))
    (received,) = remote.server.requests
    messages = received.body.get("messages") or received.body["input"]["messages"]
    assert received.body["model"] == "qwen-plus"
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"] == "你好"
    assert received.headers["Authorization"] == f"Bearer {API_KEY}"


async def test_the_stand_in_quotes_the_first_passage(remote: RemoteChat) -> None:
    assert text_of(await collect(remote.model, ask())) == "默认端口是 8000。 [1]"


async def test_it_keeps_thinking_out_of_the_answer(remote: RemoteChat) -> None:
    remote.server.script(Reply(thinking=("先看", "端口"), pieces=("8000",)))
    deltas = await collect(remote.model, ask())
    assert thinking_of(deltas) == "先看端口"
    assert text_of(deltas) == "8000"


async def test_it_says_when_the_answer_was_too_long(remote: RemoteChat) -> None:
    remote.server.script(Reply(finish_reason="length"))
    assert end_of(await collect(remote.model, ask())).finish_reason == "length"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_it_tries_again_and_succeeds(remote: RemoteChat, status: int) -> None:
    remote.server.script(Reply(status=status), Reply(status=status), Reply(pieces=("ok",)))
    assert text_of(await collect(remote.model, ask(timeout_s=30))) == "ok"
    assert len(remote.server.requests) == 3
    first, second = remote.pauses.asked_s
    assert 0.25 <= first <= 0.5
    assert 0.5 <= second <= 1.0


async def test_it_gives_up_after_three_attempts(remote: RemoteChat) -> None:
    remote.server.script(*[Reply(status=503)] * 3)
    with pytest.raises(TransientError) as caught:
        await collect(remote.model, ask(timeout_s=30))
    assert caught.value.code == "model_unavailable"
    assert len(remote.server.requests) == 3


async def test_it_waits_as_long_as_the_service_asks(remote: RemoteChat) -> None:
    remote.server.script(Reply(status=429, headers={"Retry-After": "7"}), Reply())
    await collect(remote.model, ask(timeout_s=30))
    assert remote.pauses.asked_s == [7.0]


async def test_it_does_not_wait_longer_than_the_time_limit(remote: RemoteChat) -> None:
    remote.server.script(Reply(status=429, headers={"Retry-After": "120"}))
    with pytest.raises(TransientError) as caught:
        await collect(remote.model, ask(timeout_s=30))
    assert caught.value.code == "model_busy"
    assert remote.pauses.asked_s == []


async def test_it_tries_again_after_a_broken_connection(remote: RemoteChat) -> None:
    # DashScope's SDK sends once more on its own.
    remote.server.script(Reply(drop_connection=True), Reply(drop_connection=True), Reply(pieces=("ok",)))
    assert text_of(await collect(remote.model, ask(timeout_s=30))) == "ok"
    assert len(remote.server.requests) == 3


async def test_it_reports_a_service_that_is_not_there(remote: RemoteChat) -> None:
    remote.server.stop()
    with pytest.raises(TransientError) as caught:
        await collect(remote.model, ask(timeout_s=30))
    assert caught.value.code == "model_unavailable"
    assert len(remote.pauses.asked_s) == 2


async def test_it_gives_up_when_the_first_token_does_not_come(remote: RemoteChat) -> None:
    remote.server.script(Reply(hang_after=0))
    with pytest.raises(TransientError) as caught:
        await collect(remote.model, ask(timeout_s=0.1))
    assert caught.value.code == "model_timeout"
    assert await asyncio.to_thread(remote.server.wait_for_disconnect)


async def test_it_keeps_what_came_when_the_next_token_does_not_come(remote: RemoteChat) -> None:
    remote.server.script(Reply(pieces=("half", " more"), hang_after=1))
    deltas = await collect(remote.model, ask(timeout_s=0.3))
    assert text_of(deltas) == "half"
    assert end_of(deltas).finish_reason == "cut"
    assert await asyncio.to_thread(remote.server.wait_for_disconnect)


@pytest.mark.parametrize(
    "fault",
    [
        Reply(pieces=("half", " more"), cut_after=1),
        Reply(pieces=("half", " more"), malformed_after=1),
        Reply(pieces=("half", " more"), error_after=1, error_code="InternalError"),
    ],
    ids=["cut", "malformed", "error event"],
)
async def test_a_stream_that_breaks_ends_with_what_came(remote: RemoteChat, fault: Reply) -> None:
    remote.server.script(fault)
    deltas = await collect(remote.model, ask())
    assert text_of(deltas) == "half"
    assert end_of(deltas).finish_reason == "cut"
    assert len(remote.server.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [Reply(cut_after=0), Reply(malformed_after=0), Reply(error_after=0, error_code="InternalError")],
    ids=["cut", "malformed", "error event"],
)
async def test_a_stream_that_breaks_before_the_first_token_is_tried_again(remote: RemoteChat, fault: Reply) -> None:
    remote.server.script(fault, Reply(pieces=("whole",)))
    deltas = await collect(remote.model, ask(timeout_s=30))
    assert text_of(deltas) == "whole"
    assert end_of(deltas).finish_reason == "stop"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=400, error_message="Range of input length should be [1, 30720]"), "model_request_refused"),
        (Reply(status=401, error_message=f"Incorrect API key: {API_KEY}"), "model_key_refused"),
        (Reply(status=403), "model_key_refused"),
        (Reply(status=404, error_message="no such model"), "model_not_found"),
        (Reply(status=429, error_code="insufficient_quota"), "model_quota"),
    ],
)
async def test_a_refusal_is_permanent_and_asked_once(remote: RemoteChat, reply: Reply, code: str) -> None:
    remote.server.script(reply)
    with pytest.raises(PermanentError) as caught:
        await collect(remote.model, ask())
    assert caught.value.code == code
    assert API_KEY not in caught.value.message
    assert len(remote.server.requests) == 1


async def test_a_refusal_quotes_the_service_without_its_secrets(remote: RemoteChat) -> None:
    message = f"bad input from {API_KEY} at https://admin:secret@proxy.example/v1"
    remote.server.script(Reply(status=400, error_message=message))
    with pytest.raises(PermanentError) as caught:
        await collect(remote.model, ask())
    assert "bad input" in caught.value.message
    assert API_KEY not in caught.value.message
    assert "secret" not in caught.value.message


async def test_it_understands_a_gateways_error_page(remote: RemoteChat) -> None:
    remote.server.script(Reply(status=502, is_error_plain=True), Reply(pieces=("ok",)))
    assert text_of(await collect(remote.model, ask(timeout_s=30))) == "ok"


async def test_closing_the_stream_closes_the_connection(remote: RemoteChat) -> None:
    remote.server.script(Reply(pieces=("one", "two"), hang_after=1))
    stream = remote.model.stream(ask())
    assert await anext(stream) == TextDelta(text="one")
    await stream.aclose()
    await asyncio.sleep(0)
    # The loop stands still while this waits: nothing that was left for later can have closed the connection.
    assert remote.server.wait_for_disconnect()


async def test_cancelling_the_reader_closes_the_connection(remote: RemoteChat) -> None:
    remote.server.script(Reply(pieces=("one", "two"), hang_after=1))
    started = asyncio.Event()

    async def read() -> None:
        async for _ in remote.model.stream(ask()):
            started.set()

    reader = asyncio.create_task(read())
    await started.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await asyncio.to_thread(remote.server.wait_for_disconnect)


async def test_it_serves_streams_side_by_side(remote: RemoteChat) -> None:
    answers = await asyncio.gather(*[collect(remote.model, ask()) for _ in range(20)])
    assert {text_of(deltas) for deltas in answers} == {"默认端口是 8000。 [1]"}


async def test_it_works_again_after_it_was_closed(remote: RemoteChat) -> None:
    await collect(remote.model, ask())
    await remote.model.aclose()
    assert text_of(await collect(remote.model, ask()))
