"""The OpenAPI entries of the async views, which drf-spectacular cannot see: a post-processing hook."""

from __future__ import annotations

from typing import Any

_RUN_ID = {"name": "run_id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "schema": {"type": "integer"},
    "description": "Number of the last event received; also as the query parameter last_event_id.",
}
_STREAM = {
    "200": {
        "description": (
            "Server-sent events, each with an increasing id: understanding, routing, retrieval, rerank, grader, start, "
            "token*, done; error ends a stream that failed. Payloads are JSON with camelCase keys and runId."
        ),
        "headers": {
            "X-Run-Id": {"schema": {"type": "string", "format": "uuid"}},
            "X-Conversation-Id": {"schema": {"type": "integer"}},
        },
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
_ERROR_SCHEMA = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {}},
            "required": ["code", "message", "details"],
        }
    },
    "required": ["error"],
}
_IDS = {"type": "array", "items": {"type": "integer"}}
_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "maxLength": 8000},
        "conversation_id": {"type": "integer", "description": "Without it, a new conversation begins."},
        "kb_ids": {**_IDS, "description": "Knowledge bases to answer from; without it the conversation's, else all."},
        "document_ids": {**_IDS, "description": "Documents to answer from."},
    },
    "required": ["question"],
}
_STOPPED = {
    "type": "object",
    "properties": {"run_id": {"type": "string", "format": "uuid"}, "message_id": {"type": "integer"}},
}


def add_stream_endpoints(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Enter ask, a run's events and stop into the schema."""
    security: list[dict[str, list[str]]] = [
        {name: []} for name in result.get("components", {}).get("securitySchemes", {})
    ]
    ask = {
        "operationId": "chat_ask",
        "description": "Ask a question. Send X-Run-Id back to stop or to resume.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _QUESTION}}},
        "responses": _STREAM | _errors(400, 401, 403, 404, 413, 429),
    }
    events = {
        "operationId": "chat_run_events",
        "description": "The rest of a run's events.",
        "parameters": [_RUN_ID, _LAST_EVENT_ID],
        "responses": _STREAM | _errors(400, 401, 403, 404, 410),
    }
    stop = {
        "operationId": "chat_run_stop",
        "description": "Stop a run; what was produced is kept.",
        "parameters": [_RUN_ID],
        "responses": {
            "202": {"description": "", "content": {"application/json": {"schema": _STOPPED}}},
            **_errors(401, 403, 404),
        },
    }
    shared = {"tags": ["chat"], **({"security": security} if security else {})}
    result["paths"] |= {
        "/api/chat/ask/": {"post": shared | ask},
        "/api/chat/runs/{run_id}/events/": {"get": shared | events},
        "/api/chat/runs/{run_id}/stop/": {"post": shared | stop},
    }
    return result


def _errors(*statuses: int) -> dict[str, Any]:
    content = {"application/json": {"schema": _ERROR_SCHEMA}}
    return {str(status): {"description": "Error", "content": content} for status in statuses}
