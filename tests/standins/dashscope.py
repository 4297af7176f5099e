"""Speaks DashScope's native text generation: `python -m tests.standins.dashscope --port 9002`."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.standins.script import Reply
from tests.standins.serving import ReceivedRequest, StandIn, close_abruptly, run_from_command_line, send_pieces

_ROLES = {"system", "user", "assistant", "tool"}
_REQUEST_ID = "00000000-0000-0000-0000-000000000001"


class DashScopeStandIn(StandIn):
    path = "/api/v1/services/aigc/text-generation/generation"

    def __init__(
        self, *, api_key: str | None = None, models: frozenset[str] | None = None, errors_as_events: bool = False
    ) -> None:
        """`errors_as_events`: a refused streaming request is answered as an event stream with the error's status."""
        super().__init__(api_key=api_key, models=models)
        self.errors_as_events = errors_as_events

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        self.requests.append(ReceivedRequest(path=request.path, headers=dict(request.headers), body=body))
        if refusal := self._refusal(request, body):
            return refusal
        reply = self.next_reply(body["input"]["messages"])
        if reply.drop_connection:
            close_abruptly(request)
            return web.Response()
        if reply.status != 200:
            return self._scripted_error(reply)
        if request.headers.get("X-DashScope-SSE") != "enable":
            return web.json_response(_event(body, reply, "".join(reply.pieces), len(reply.pieces), is_last=True))
        return await self._stream(request, body, reply)

    def _refusal(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        """What the real service refuses."""
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not key or (self.api_key is not None and key != self.api_key):
            return self._error(401, "InvalidApiKey", "Invalid API-key provided.")
        if not body.get("model"):
            return self._error(400, "InvalidParameter", "Model not exist.")
        if self.models is not None and body["model"] not in self.models:
            return self._error(404, "ModelNotFound", "Model can not be found.")
        messages = (body.get("input") or {}).get("messages")
        if not isinstance(messages, list) or not messages:
            return self._error(400, "InvalidParameter", 'Either "prompt" or "messages" must exist.')
        if any(message.get("role") not in _ROLES or not message.get("content") for message in messages):
            text = "Role must be in [user, assistant, system, tool] and content length must be greater than 0"
            return self._error(400, "InvalidParameter", text)
        if messages[-1]["role"] not in {"user", "tool"}:
            return self._error(400, "InvalidParameter", "The last message must have the role user.")
        if not 0 <= (body.get("parameters") or {}).get("temperature", 0.5) < 2:
            return self._error(400, "InvalidParameter", "Temperature should be in [0.0, 2.0)")
        return None

    async def _stream(self, request: web.Request, body: dict[str, Any], reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream;charset=UTF-8"})
        await response.prepare(request)
        is_incremental = bool((body.get("parameters") or {}).get("incremental_output"))

        async def write(kind: str, status: int, data: str) -> None:
            await response.write(f"id:1\nevent:{kind}\n:HTTP_STATUS/{status}\ndata:{data}\n\n".encode())

        async def send(number: int) -> None:
            if reply.malformed_after == number:
                await write("result", 200, "{broken")
            if reply.error_after == number:
                error = {"code": reply.error_code, "message": reply.error_message, "request_id": _REQUEST_ID}
                await write("error", 400, json.dumps(error))
            text = reply.pieces[number] if is_incremental else "".join(reply.pieces[: number + 1])
            await write("result", 200, json.dumps(_event(body, reply, text, number + 1), ensure_ascii=False))

        for thought in reply.thinking:
            await write("result", 200, json.dumps(_event(body, reply, "", 0, thinking=thought)))
        if not await send_pieces(reply, send, request):
            return response
        last = "" if is_incremental else "".join(reply.pieces)
        if reply.finish_reason is not None:
            await write("result", 200, json.dumps(_event(body, reply, last, len(reply.pieces), is_last=True)))
        await response.write_eof()
        return response

    def _scripted_error(self, reply: Reply) -> web.Response:
        if reply.is_error_plain:
            return web.Response(status=reply.status, text=f"<html>{reply.error_message}</html>", headers=reply.headers)
        response = self._error(reply.status, reply.error_code or "Unknown", reply.error_message)
        response.headers.update(reply.headers)
        return response

    def _error(self, status: int, code: str, message: str) -> web.Response:
        error = {"code": code, "message": message, "request_id": _REQUEST_ID}
        if not self.errors_as_events:
            return web.json_response(error, status=status)
        text = f"id:1\nevent:error\n:HTTP_STATUS/{status}\ndata:{json.dumps(error)}\n\n"
        return web.Response(status=status, text=text, content_type="text/event-stream")


def _event(
    body: dict[str, Any], reply: Reply, text: str, tokens: int, *, thinking: str = "", is_last: bool = False
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    if thinking:
        message["reasoning_content"] = thinking
    event: dict[str, Any] = {
        "output": {"choices": [{"message": message, "finish_reason": reply.finish_reason if is_last else "null"}]},
        "request_id": _REQUEST_ID,
    }
    if reply.has_usage:
        prompt = sum(len(message["content"]) for message in body["input"]["messages"])
        event["usage"] = {"input_tokens": prompt, "output_tokens": tokens, "total_tokens": prompt + tokens}
    return event


if __name__ == "__main__":
    run_from_command_line(lambda key: DashScopeStandIn(api_key=key), "DASHSCOPE_HTTP_BASE_URL", "/api/v1")
