"""Messages and conversations as the API and the pages show them.

A source is shown only while its knowledge base may be read: after a right was withdrawn, an old answer keeps its text
and its numbers, and what a number stood for is hidden.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.chat.models import Conversation, Message
from apps.chat.services import LOST_AFTER
from apps.rbac.scope import AccessScope
from docmind.text.render import render_markdown


def conversation_view(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "kb_ids": conversation.kb_ids,
        "message_count": conversation.message_count,
        "last_active_at": conversation.last_active_at,
        "created_at": conversation.created_at,
    }


def message_view(message: Message, scope: AccessScope) -> dict[str, Any]:
    """One message for its owner, `scope` being what the owner may read now (not narrowed)."""
    sources = [_visible(source, scope) for source in message.sources]
    hidden = {source["index"] for source in sources if source["hidden"]}
    is_answer = message.role == Message.Role.ASSISTANT
    return {
        "id": message.pk,
        "role": message.role,
        "content": message.content,
        "html": str(render_markdown(message.content, citation_count=len(sources))) if is_answer else "",
        "sources": sources,
        "citations": [citation for citation in message.citations if citation["index"] not in hidden],
        "agent_trace": message.agent_trace,
        "retrieval_log": message.retrieval_log,
        "confidence_score": message.confidence_score,
        "confidence_band": message.confidence_band,
        "citation_coverage": message.citation_coverage,
        "invalid_refs": message.invalid_refs,
        "is_fallback": message.is_fallback,
        "intent": message.intent,
        "model": message.model,
        "status": current_status(message),
        "error_code": message.error_code,
        "run_id": str(message.run_id),
        "reply_to": message.reply_to_id,
        "version": message.version,
        "feedback": message.feedback,
        "response_time_ms": message.response_time_ms,
        "created_at": message.created_at,
    }


def current_status(message: Message) -> str:
    """The message's state; one whose process has died counts as failed before the sweep has come by."""
    lost = message.heartbeat_at is None or message.heartbeat_at < timezone.now() - LOST_AFTER
    if message.status == Message.Status.STREAMING and lost:
        return str(Message.Status.FAILED)
    return str(message.status)


def _visible(source: dict[str, Any], scope: AccessScope) -> dict[str, Any]:
    kb_id = source["knowledgeBaseId"]
    if source["kind"] == "web" or (kb_id is not None and scope.can_read(kb_id)):
        return {**source, "hidden": False}
    return {
        "index": source["index"],
        "id": None,
        "name": _("No longer available to you"),
        "page": None,
        "snippet": "",
        "kind": source["kind"],
        "headingPath": "",
        "documentId": None,
        "knowledgeBaseId": None,
        "start": 0,
        "end": 0,
        "url": "",
        "hidden": True,
    }
