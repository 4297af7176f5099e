"""Speaks OpenAI's chat completions: `python -m tests.standins.openai --port 9001`."""

from __future__ import annotations

import json
import time
from typing import Any

from aiohttp import web

from tests.standins.script import Reply
from tests.standins.serving import ReceivedRequest, StandIn, close_abruptly, run_from_command_line, send_pieces

_ROLES = {"system", "user", "assistant", "tool", "developer"}


class OpenAIStandIn(StandIn):
    path = "/v1/chat/completions"

    def __init__(
        self,
        *,
        api_key: str | None = None,
        models: frozenset[str] | None = None,
        refused_parameters: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(api_key=api_key, models=models)
        self.refused_parameters = refused_parameters

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        self.requests.append(ReceivedRequest(path=request.path, headers=dict(request.headers), body=body))
        if refusal := self._refusal(request, body):
            return refusal
        reply = self.next_reply(body["messages"])
        if reply.drop_connection:
            close_abruptly(request)
            return web.Response()
        if reply.status != 200:
            return _scripted_error(reply)
        if not body.get("stream"):
            return web.json_response(_whole(body, reply))
        return await self._stream(request, body, reply)

    def _refusal(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        """What the real service refuses."""
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not key:
            return _error(401, "You didn't provide an API key.", None)
        if self.api_key is not None and key != self.api_key:
            return _error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        if not body.get("model"):
            return _error(400, "you must provide a model parameter", None)
        if self.models is not None and body["model"] not in self.models:
            return _error(404, f"The model `{body['model']}` does not exist", "model_not_found")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return _error(400, "Missing required parameter: 'messages'.", "missing_required_parameter")
        for number, message in enumerate(messages):
            if message.get("role") not in _ROLES:
                return _error(400, f"Invalid value: '{message.get('role')}'.", None, f"messages[{number}].role")
            if message.get("content") is None:
                return _error(400, "Invalid value for 'content': expected a string, got null.", None)
        if not 0 <= body.get("temperature", 1) <= 2:
            return _error(400, "Invalid 'temperature'.", "decimal_above_max_value", "temperature")
        for name in sorted(self.refused_parameters & body.keys()):
            return _error(400, f"Unsupported parameter: '{name}'.", "unsupported_parameter", name)
        return None

    async def _stream(self, request: web.Request, body: dict[str, Any], reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def write(data: str) -> None:
            await response.write(f"data: {data}\n\n".encode())

        async def send(number: int) -> None:
            if reply.malformed_after == number:
                await write("{broken")
            if reply.error_after == number:
                await write(json.dumps({"error": {"message": reply.error_message, "code": reply.error_code}}))
            await write(json.dumps(_chunk(body, reply, {"content": reply.pieces[number]})))

        if not reply.is_bare:
            await write(json.dumps(_chunk(body, reply, {"role": "assistant", "content": ""})))
        for thought in reply.thinking:
            await write(json.dumps(_chunk(body, reply, {"reasoning_content": thought})))
        if not await send_pieces(reply, send, request):
            return response
        if not reply.is_bare:
            await write(json.dumps(_chunk(body, reply, {}, finish_reason=reply.finish_reason)))
            if reply.has_usage and (body.get("stream_options") or {}).get("include_usage"):
                await write(json.dumps({**_chunk(body, reply, {}), "choices": [], "usage": _usage(body, reply)}))
        await write("[DONE]")
        await response.write_eof()
        return response


def _chunk(
    body: dict[str, Any], reply: Reply, delta: dict[str, Any], finish_reason: str | None = None
) -> dict[str, Any]:
    if reply.is_bare:
        return {"choices": [{"delta": delta}]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        "usage": None,
    }


def _whole(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(reply.pieces)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": _usage(body, reply),
    }


def _usage(body: dict[str, Any], reply: Reply) -> dict[str, int]:
    prompt = sum(len(message["content"]) for message in body["messages"])
    return {"prompt_tokens": prompt, "completion_tokens": len(reply.pieces), "total_tokens": prompt + len(reply.pieces)}


def _scripted_error(reply: Reply) -> web.Response:
    if reply.is_error_plain:
        return web.Response(status=reply.status, text=f"<html>{reply.error_message}</html>", headers=reply.headers)
    response = _error(reply.status, reply.error_message, reply.error_code or None)
    response.headers.update(reply.headers)
    return response


def _error(status: int, message: str, code: str | None, param: str | None = None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return web.json_response({"error": error}, status=status)


if __name__ == "__main__":
    run_from_command_line(lambda key: OpenAIStandIn(api_key=key), "OPENAI_BASE_URL", "/v1")
