"""Asking, listening and stopping: plain async views, because nothing on the way of a stream may buffer.

They share DRF's authentication, throttling and error shape. All database work of a request is one call in the database
pool; the answer itself is a run, which outlives the request.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.throttling import ScopedRateThrottle

from apps.aiconfig.services import current_config
from apps.chat import services
from apps.chat.api.serializers import AskSerializer
from apps.chat.deps import current_deps
from apps.chat.models import Message
from apps.chat.pipeline.types import AskRequest
from apps.chat.presentation import current_status
from apps.chat.runs import current_runs, process_id
from apps.chat.sse import stream_run
from apps.kb.access import resolve_scope
from apps.rbac.api.authentication import Caller, authenticate
from docmind.api import error_body, error_response
from docmind.executor import run_db

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
_MAX_LISTED_FRAMES = 10**9


def _endpoint(method: str) -> Callable[[View], View]:
    """An API endpoint of one method: errors take the one shape; CSRF is the authentication's business."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        async def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            try:
                if request.method != method:
                    raise exceptions.MethodNotAllowed(request.method or "")
                return await view(request, **kwargs)
            except Exception as error:  # noqa: BLE001 -- the boundary of a request; unforeseen ones are logged there
                return error_response(error)

        exempt: View = csrf_exempt(guarded)
        return exempt

    return decorate


@_endpoint("POST")
async def ask(request: HttpRequest) -> HttpResponseBase:
    """Ask a question; the response is the run's stream."""
    asked = await run_db(_admit_question, request, _read_json(request), translation.get_language() or "en")
    runs = current_runs()
    await runs.start(asked, current_deps())
    return _stream(asked.run_id, asked.conversation_id)


@_endpoint("GET")
async def run_events(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The rest of a run's stream, behind the event that Last-Event-ID names."""
    after = _last_event_id(request)
    message = await run_db(_owned_run, request, run_id, translation.get_language() or "en")
    if not await current_runs().bus.knows(run_id):
        message = await run_db(services.fail_unknown_run, message)
        details = {"message_id": message.pk, "status": current_status(message)}
        return JsonResponse(
            error_body("run_expired", _("The events of this run are no longer kept."), details), status=410
        )
    return _stream(run_id, message.conversation_id, after=after)


@_endpoint("POST")
async def stop_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Stop a run; what was produced is kept. Stopping one that has ended changes nothing."""
    message = await run_db(_owned_run, request, run_id, translation.get_language() or "en")
    if message.status == Message.Status.STREAMING:
        await current_runs().stop(run_id)
    return JsonResponse({"run_id": str(run_id), "message_id": message.pk}, status=202)


class EventStream(StreamingHttpResponse):
    """A stream whose generator the server closes itself: Django's wrappers would leave that to the garbage collector.

    Closing it is how a run learns that its listener has gone.
    """

    def __init__(self, frames: AsyncGenerator[bytes, None], **options: Any) -> None:
        super().__init__(frames, **options)
        self._frames = frames

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self._frames


def _stream(run_id: UUID, conversation_id: int, *, after: int = 0) -> EventStream:
    return EventStream(
        stream_run(current_runs().bus, run_id, after=after),
        content_type="text/event-stream; charset=utf-8",
        headers={
            "Cache-Control": "no-cache, no-transform",
            "X-Accel-Buffering": "no",
            "X-Run-Id": str(run_id),
            "X-Conversation-Id": str(conversation_id),
        },
    )


def _read_json(request: HttpRequest) -> dict[str, Any]:
    """The body as a JSON object."""
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise exceptions.ParseError(_("The request's body is not valid JSON.")) from None
    if not isinstance(body, dict):
        raise exceptions.ParseError(_("The request's body must be a JSON object."))
    return body


def _admit_question(request: HttpRequest, body: dict[str, Any], language: str) -> AskRequest:
    """Authenticate, throttle, check and write down a question; in a database thread, outside the request's context."""
    with translation.override(language):
        caller = _admit(request)
        _throttle(request, caller)
        given = AskSerializer(data=body)
        given.is_valid(raise_exception=True)
        config = current_config()
        turn = services.begin_turn(
            caller.user,
            scope=resolve_scope(caller.user, caller.key),
            process_id=process_id(),
            history_limit=config.history_max_messages,
            **given.validated_data,
        )
        return AskRequest(
            run_id=turn.run_id,
            conversation_id=turn.conversation_id,
            message_id=turn.message_id,
            question=services.check_question(given.validated_data["question"]),
            scope=turn.scope,
            config=config,
            history=turn.history,
            document_ids=turn.document_ids,
            interface_language=language,
        )


def _owned_run(request: HttpRequest, run_id: UUID, language: str) -> Message:
    with translation.override(language):
        return services.get_run(_admit(request).user, run_id)


def _admit(request: HttpRequest) -> Caller:
    """The caller, who must be allowed to ask."""
    caller = authenticate(request)
    if not caller.has_code("chat:ask"):
        raise exceptions.PermissionDenied(_("You are not allowed to ask questions."))
    return caller


class _Asking:
    throttle_scope = "ask"


def _throttle(request: HttpRequest, caller: Caller) -> None:
    wrapped = Request(request)
    wrapped.user = caller.user
    throttle = ScopedRateThrottle()
    if not throttle.allow_request(wrapped, _Asking()):  # type: ignore[arg-type]
        raise exceptions.Throttled(throttle.wait())


def _last_event_id(request: HttpRequest) -> int:
    given = request.headers.get("Last-Event-ID") or request.GET.get("last_event_id") or "0"
    if not given.isascii() or not given.isdigit() or int(given[:20]) > _MAX_LISTED_FRAMES:
        raise exceptions.ParseError(_("Last-Event-ID must be the number of an event of this run."))
    return int(given)
