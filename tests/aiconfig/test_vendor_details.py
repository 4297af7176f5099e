"""What only one of the remote providers has to do."""

from __future__ import annotations

import pytest

from apps.aiconfig.providers.dashscope import DashScopeChat
from apps.aiconfig.providers.openai_compatible import OpenAICompatibleChat
from docmind.errors import PermanentError, TransientError
from tests.aiconfig.conftest import API_KEY, Pauses, ask, collect, end_of, text_of
from tests.standins.dashscope import DashScopeStandIn
from tests.standins.openai import OpenAIStandIn
from tests.standins.script import Reply


async def test_openai_servers_may_leave_fields_out(openai_server: OpenAIStandIn) -> None:
    openai_server.script(Reply(pieces=("a", "b"), is_bare=True))
    model = OpenAICompatibleChat(api_key=API_KEY, base_url=openai_server.base_url)
    deltas = await collect(model, ask())
    assert text_of(deltas) == "ab"
    assert end_of(deltas).finish_reason == "stop"
    assert end_of(deltas).input_tokens is None
    await model.aclose()


@pytest.mark.parametrize("name", ["stream_options", "max_tokens", "temperature"])
async def test_openai_parameters_that_a_model_refuses_are_not_sent_again(name: str) -> None:
    with OpenAIStandIn(refused_parameters=frozenset({name})) as server:
        model = OpenAICompatibleChat(base_url=server.base_url)
        for _ in range(2):
            assert end_of(await collect(model, ask())).finish_reason == "stop"
        await model.aclose()
    assert [name in request.body for request in server.requests] == [True, False, False]
    assert server.requests[-1].body.get("max_completion_tokens") == (2048 if name == "max_tokens" else None)


async def test_openai_servers_without_a_key_get_a_placeholder() -> None:
    with OpenAIStandIn() as server:
        model = OpenAICompatibleChat(base_url=server.base_url)
        await collect(model, ask())
        await model.aclose()
    assert server.requests[0].headers["Authorization"] == "Bearer none"


async def test_dashscope_is_asked_for_pieces_in_message_format(dashscope_server: DashScopeStandIn) -> None:
    model = DashScopeChat(api_key=API_KEY, base_url=dashscope_server.base_url)
    await collect(model, ask(temperature=2.0))
    await model.aclose()
    (received,) = dashscope_server.requests
    assert received.headers["X-DashScope-SSE"] == "enable"
    parameters = received.body["parameters"]
    assert parameters["incremental_output"] is True
    assert parameters["result_format"] == "message"
    assert parameters["max_tokens"] == 2048
    assert parameters["temperature"] < 2


async def test_dashscope_errors_may_come_as_an_event_stream() -> None:
    with DashScopeStandIn(models=frozenset({"qwen-max"}), errors_as_events=True) as server:
        model = DashScopeChat(api_key=API_KEY, base_url=server.base_url)
        with pytest.raises(PermanentError) as caught:
            await collect(model, ask())
        await model.aclose()
    assert caught.value.code == "model_not_found"
    assert "Model can not be found" in caught.value.message


@pytest.mark.parametrize(
    ("code", "expected"),
    [("Throttling.RateQuota", "model_busy"), ("InternalError.Algo", "model_unavailable")],
)
async def test_dashscope_error_events_are_told_apart_by_their_code(
    dashscope_server: DashScopeStandIn, code: str, expected: str
) -> None:
    dashscope_server.script(*[Reply(error_after=0, error_code=code)] * 3)
    model = DashScopeChat(api_key=API_KEY, base_url=dashscope_server.base_url, sleep=Pauses())
    with pytest.raises(TransientError) as caught:
        await collect(model, ask(timeout_s=30))
    await model.aclose()
    assert caught.value.code == expected


async def test_a_dashscope_stream_without_an_end_was_cut(dashscope_server: DashScopeStandIn) -> None:
    dashscope_server.script(Reply(pieces=("half",), finish_reason=None))
    model = DashScopeChat(api_key=API_KEY, base_url=dashscope_server.base_url)
    assert end_of(await collect(model, ask())).finish_reason == "cut"
    await model.aclose()


@pytest.mark.parametrize("model", [DashScopeChat(api_key=""), OpenAICompatibleChat()], ids=lambda model: model.name)
async def test_a_provider_without_a_key_says_so(model: DashScopeChat | OpenAICompatibleChat) -> None:
    with pytest.raises(PermanentError) as caught:
        await collect(model, ask())
    assert caught.value.code == "model_not_configured"
