"""The verbs of conversations. Everything is looked up through its owner: what is another's does not exist.

Permission codes (chat:ask, chat:history) are the adapters' duty.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.chat.models import Conversation, Message
from apps.chat.pipeline.types import HistoryMessage
from apps.kb.models import Document
from apps.rbac.models import User
from apps.rbac.scope import AccessScope
from docmind.errors import PermanentError

MAX_QUESTION_CHARS: Final = 8000
TITLE_CHARS: Final = 60
LOST_AFTER: Final = timedelta(seconds=60)
"""A streaming row whose heartbeat is older has lost its process."""
UNKNOWN_LOST_AFTER: Final = timedelta(seconds=5)
"""The same for a run that is not on the bus either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question that has been written down and the empty answer beside it. `scope` is narrowed to what was chosen."""

    run_id: uuid.UUID
    conversation_id: int
    message_id: int
    scope: AccessScope
    document_ids: frozenset[int] | None
    history: tuple[HistoryMessage, ...]
    """Oldest first, without this question."""


def conversations_of(user: User) -> QuerySet[Conversation]:
    """The user's conversations, the latest active first."""
    return Conversation.objects.filter(user=user)


def get_conversation(user: User, conversation_id: int) -> Conversation:
    """One of the user's conversations. Raises PermanentError `not_found`."""
    conversation = conversations_of(user).filter(pk=conversation_id).first()
    if conversation is None:
        raise PermanentError(_("There is no such conversation."), code="not_found")
    return conversation


def create_conversation(user: User, *, scope: AccessScope, title: str = "", kb_ids: Sequence[int] = ()) -> Conversation:
    """Start an empty conversation. Raises PermanentError `not_found` for a knowledge base outside the scope."""
    _require_readable(scope, kb_ids)
    return Conversation.objects.create(user=user, title=_clean_title(title), kb_ids=sorted(set(kb_ids)))


def update_conversation(
    conversation: Conversation, *, scope: AccessScope, title: str | None = None, kb_ids: Sequence[int] | None = None
) -> Conversation:
    """Rename, or choose other knowledge bases; None leaves a thing as it is."""
    fields = []
    if title is not None:
        conversation.title = _clean_title(title)
        fields.append("title")
    if kb_ids is not None:
        _require_readable(scope, kb_ids)
        conversation.kb_ids = sorted(set(kb_ids))
        fields.append("kb_ids")
    conversation.save(update_fields=fields)
    return conversation


def delete_conversation(conversation: Conversation) -> None:
    """Delete a conversation with its messages. A run that is still writing into it finds no row and is not missed."""
    conversation.delete()


def list_messages(conversation: Conversation) -> QuerySet[Message]:
    """The conversation's messages, oldest first."""
    return Message.objects.filter(conversation=conversation).order_by("id")


def set_feedback(user: User, message_id: int, *, value: int, reason: str = "") -> Message:
    """Thumbs up (1), down (-1) or neither (0) on an answer of the user's. Raises PermanentError `not_found`."""
    message = Message.objects.filter(pk=message_id, conversation__user=user, role=Message.Role.ASSISTANT).first()
    if message is None:
        raise PermanentError(_("There is no such answer."), code="not_found")
    message.feedback = value or None
    message.feedback_reason = _storable(reason) if value else ""
    message.save(update_fields=["feedback", "feedback_reason"])
    return message


def get_run(user: User, run_id: uuid.UUID) -> Message:
    """The answer that a run of the user's writes. Raises PermanentError `not_found`."""
    message = Message.objects.filter(run_id=run_id, role=Message.Role.ASSISTANT, conversation__user=user).first()
    if message is None:
        raise PermanentError(_("There is no such run."), code="not_found")
    return message


@transaction.atomic
def begin_turn(
    user: User,
    *,
    scope: AccessScope,
    question: str,
    process_id: str,
    conversation_id: int | None = None,
    kb_ids: Sequence[int] | None = None,
    document_ids: Sequence[int] | None = None,
    history_limit: int = 6,
) -> Turn:
    """Write the question and an empty streaming answer; without a conversation, start one titled by the question.

    `kb_ids` holds for this question (and for the conversation, where it starts one); without it the conversation's
    choice counts, and without that everything readable. Raises PermanentError `invalid` or `not_found`.
    """
    question = check_question(question)
    _require_readable(scope, kb_ids or ())
    if conversation_id is None:
        conversation = create_conversation(user, scope=scope, title=question, kb_ids=kb_ids or ())
        history: tuple[HistoryMessage, ...] = ()
    else:
        conversation = get_conversation(user, conversation_id)
        history = _history(conversation, history_limit)
    scope = scope.narrow((kb_ids or conversation.kb_ids) or None)
    documents = _readable_documents(scope, document_ids) if document_ids else None
    run_id, now = uuid.uuid4(), timezone.now()
    asked = Message.objects.create(conversation=conversation, role=Message.Role.USER, content=question, run_id=run_id)
    answer = Message.objects.create(
        conversation=conversation,
        role=Message.Role.ASSISTANT,
        run_id=run_id,
        reply_to=asked,
        status=Message.Status.STREAMING,
        process_id=process_id,
        heartbeat_at=now,
    )
    changes = {"message_count": F("message_count") + 2, "last_active_at": now}
    if not conversation.title:
        changes["title"] = _clean_title(question)
    Conversation.objects.filter(pk=conversation.pk).update(**changes)
    return Turn(
        run_id=run_id,
        conversation_id=conversation.pk,
        message_id=answer.pk,
        scope=scope,
        document_ids=documents,
        history=history,
    )


def check_question(question: str) -> str:
    """The question without surrounding white space. Raises PermanentError `invalid`, with a message for the reader."""
    question = _storable(question).strip()
    if not question:
        raise PermanentError(_("Please write a question."), code="invalid")
    if len(question) > MAX_QUESTION_CHARS:
        raise PermanentError(
            _("The question has %(length)d characters; at most %(limit)d are possible.")
            % {"length": len(question), "limit": MAX_QUESTION_CHARS},
            code="invalid",
        )
    return question


def fail_lost_runs() -> int:
    """Turn streaming answers whose process has died into failed; the text so far stays. Returns how many."""
    return Message.objects.filter(
        Q(heartbeat_at__lt=timezone.now() - LOST_AFTER) | Q(heartbeat_at=None),
        status=Message.Status.STREAMING,
    ).update(status=Message.Status.FAILED, error_code="run_lost")


def fail_unknown_run(message: Message) -> Message:
    """Close the answer of a run that is not on the bus, unless its heartbeat is fresh; returns the row."""
    Message.objects.filter(
        pk=message.pk, status=Message.Status.STREAMING, heartbeat_at__lt=timezone.now() - UNKNOWN_LOST_AFTER
    ).update(status=Message.Status.FAILED, error_code="run_lost")
    message.refresh_from_db(fields=["status", "heartbeat_at"])
    return message


def _history(conversation: Conversation, limit: int) -> tuple[HistoryMessage, ...]:
    if limit <= 0:
        return ()
    rows = (
        Message.objects.filter(conversation=conversation)
        .exclude(status__in=(Message.Status.STREAMING, Message.Status.FAILED))
        .exclude(content="")
        .order_by("-id")
        .values_list("role", "content")[:limit]
    )
    return tuple(
        HistoryMessage(role="user" if role == Message.Role.USER else "assistant", content=content)
        for role, content in reversed(rows)
    )


def _require_readable(scope: AccessScope, kb_ids: Iterable[int]) -> None:
    if any(not scope.can_read(kb_id) for kb_id in kb_ids):
        raise PermanentError(_("There is no such knowledge base."), code="not_found")


def _readable_documents(scope: AccessScope, document_ids: Sequence[int]) -> frozenset[int]:
    wanted = frozenset(document_ids)
    found = frozenset(
        Document.objects.filter(pk__in=wanted, knowledge_base_id__in=scope.readable_kb_ids).values_list("pk", flat=True)
    )
    if found != wanted:
        raise PermanentError(_("There is no such document."), code="not_found")
    return found


def _clean_title(text: str) -> str:
    title = " ".join(_storable(text).split())
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…"


def _storable(text: str) -> str:
    """Without what no database takes: NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
