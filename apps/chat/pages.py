"""The chat page, and one answer as a fragment of it: an answer that is done stands there as a reload would show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from apps.aiconfig.providers.registry import current_providers
from apps.chat.models import Conversation, Message
from apps.chat.presentation import message_view
from apps.chat.services import conversations_of, list_messages
from apps.kb.access import resolve_scope
from apps.kb.models import KnowledgeBase
from apps.rbac.pages import render_page, signed_in_user
from apps.rbac.scope import AccessScope

CONVERSATIONS_SHOWN: Final = 40
MESSAGES_SHOWN: Final = 40
EXTRACTIVE_MODEL: Final = "none"
_EMPHASIS: Final = re.compile(r"`+|\*\*")
_TABLE_RULE: Final = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+")
_TABLE_CELL: Final = re.compile(r"\s*\|[\s|]*")
_TONES: Final = {"HIGH": "good", "MEDIUM": "warn", "LOW": "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCard:
    """A numbered source below an answer. `href` opens the passage in its document, or the page on the web."""

    index: int
    name: str
    heading_path: str
    page: int | None
    snippet: str
    kind: str
    href: str
    is_cited: bool


@require_safe
def start(request: HttpRequest) -> HttpResponseRedirect:
    return redirect("chat")


@login_required
@require_safe
def chat(request: HttpRequest) -> HttpResponse:
    """A new conversation; `?kb=` chooses a knowledge base for it."""
    scope = _chat_scope(request)
    wanted = request.GET.get("kb", "")
    chosen = [int(wanted)] if wanted.isdecimal() and wanted.isascii() and len(wanted) < 16 else []
    return render_page(request, "chat/chat.html", {**_frame(request, scope), "chosen": chosen, "turns": []})


@login_required
@require_safe
def conversation(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """A conversation of the user's, its latest messages first shown; `?before=` shows earlier ones."""
    scope = _chat_scope(request)
    shown = get_object_or_404(conversations_of(signed_in_user(request)), pk=conversation_id)
    if "chat:history" not in scope.permissions:
        raise Http404
    before = request.GET.get("before", "")
    rows = list_messages(shown)
    if is_past := before.isdecimal() and before.isascii() and len(before) < 16:
        rows = rows.filter(pk__lt=int(before))
    latest = list(rows.order_by("-id")[: MESSAGES_SHOWN + 1])
    messages = latest[:MESSAGES_SHOWN][::-1]
    questions = {message.pk: message.content for message in messages if message.role == Message.Role.USER}
    context = {
        **_frame(request, scope),
        "conversation": shown,
        "chosen": shown.kb_ids,
        "turns": [_turn(message, scope, questions.get(message.reply_to_id or 0, "")) for message in messages],
        "earlier": messages[0].pk if len(latest) > MESSAGES_SHOWN else None,
        "is_past": is_past,
    }
    return render_page(request, "chat/chat.html", context)


@login_required
@require_safe
def message_html(request: HttpRequest, message_id: int) -> HttpResponse:
    """One answer, as it stands in its conversation."""
    scope = _chat_scope(request)
    answers = Message.objects.select_related("reply_to").filter(role=Message.Role.ASSISTANT)
    message = get_object_or_404(answers, pk=message_id, conversation__user=signed_in_user(request))
    question = message.reply_to.content if message.reply_to else ""
    return render_page(request, "chat/_answer.html", {"answer": _turn(message, scope, question)})


def _chat_scope(request: HttpRequest) -> AccessScope:
    scope = resolve_scope(signed_in_user(request))
    if "chat:ask" not in scope.permissions:
        raise PermissionDenied
    return scope


def _frame(request: HttpRequest, scope: AccessScope) -> dict[str, Any]:
    """What stands around the messages."""
    rows: list[Conversation] = []
    if "chat:history" in scope.permissions:
        rows = list(conversations_of(signed_in_user(request))[: CONVERSATIONS_SHOWN + 1])
    readable = KnowledgeBase.objects.filter(pk__in=scope.readable_kb_ids)
    return {
        "section": "chat",
        "conversations": rows[:CONVERSATIONS_SHOWN],
        "more_conversations": len(rows) > CONVERSATIONS_SHOWN,
        "knowledge_bases": readable.annotate(document_total=Count("documents")).order_by("name", "id"),
        "is_generative": current_providers().chat.is_generative,
        "suggestions": _suggestions(),
        "blank_answer": {"status": "streaming", "script_data": {"trace": [], "content": "", "responseTimeMs": 0}},
    }


def _suggestions() -> tuple[str, ...]:
    """First questions; the manual that is imported at the first start answers them."""
    return (
        _("How is MySQL configured for DocMind?"),
        _("Which formats can be uploaded?"),
        _("How does an IDE reach DocMind over MCP?"),
    )


def _turn(message: Message, scope: AccessScope, question: str) -> dict[str, Any]:
    """A message for the templates: the API's view of it, and what only the page shows."""
    view = message_view(message, scope)
    if message.role == Message.Role.USER:
        return view
    cards = _source_cards(view)
    coverage = view["citation_coverage"]
    return {
        **view,
        "question": question,
        "cited": [card for card in cards if card.is_cited],
        "uncited": [card for card in cards if not card.is_cited],
        "band_name": message.get_confidence_band_display(),
        "band_tone": _TONES.get(view["confidence_band"], "bad"),
        "coverage_percent": None if coverage is None else round(coverage * 100),
        "top_score": _top_score(view["agent_trace"]),
        "is_extractive": view["model"] == EXTRACTIVE_MODEL,
        "error_text": _error_text(view["error_code"]),
        "script_data": {
            "trace": view["agent_trace"],
            "content": view["content"],
            "responseTimeMs": view["response_time_ms"] or 0,
        },
    }


def _source_cards(view: Mapping[str, Any]) -> list[SourceCard]:
    citations = {citation["index"]: citation for citation in view["citations"]}
    return [
        SourceCard(
            index=source["index"],
            name=source["name"],
            heading_path=source["headingPath"],
            page=source["page"],
            snippet=_plain(source["snippet"]),
            kind=source["kind"],
            href=_source_address(source, citations.get(source["index"])),
            is_cited=source["index"] in citations,
        )
        for source in view["sources"]
    ]


def _plain(markdown: str) -> str:
    """A snippet without the marks of emphasis, code and tables, which a card does not render."""
    text = _EMPHASIS.sub("", markdown)
    if text.startswith("|"):
        text = _TABLE_CELL.sub(" · ", _TABLE_RULE.sub("|", text)).strip(" ·")
    return text


def _source_address(source: Mapping[str, Any], citation: Mapping[str, Any] | None) -> str:
    """Where a source is read. A citation knows the very passage; the source, what stood around it."""
    if source["kind"] == "web":
        url = str(source["url"])
        return url if url.startswith(("https://", "http://")) else ""
    if source["documentId"] is None:
        return ""
    place = citation or source
    query = urlencode({"start": place["start"], "end": place["end"]})
    return f"{reverse('document', args=[source['documentId']])}?{query}#passage"


def _top_score(trace: list[dict[str, Any]]) -> float | None:
    scores = [stage.get("topScore") for stage in trace if stage.get("event") == "grader"]
    return scores[-1] if scores else None


def _error_text(code: str) -> str:
    if code == "run_lost":
        return _("The server was restarted while this answer was being written.")
    return _("The answer could not be finished. Ask again; if it keeps failing, tell an administrator.")
