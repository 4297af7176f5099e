"""The API's shapes of conversations and messages."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.chat.models import Conversation, Message
from apps.chat.presentation import message_view
from apps.chat.services import MAX_QUESTION_CHARS


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    title = serializers.CharField(max_length=200, required=False)
    kb_ids = serializers.ListField(child=serializers.IntegerField(min_value=1), required=False, max_length=1000)

    class Meta:
        model = Conversation
        fields = ("id", "title", "kb_ids", "message_count", "last_active_at", "created_at")
        read_only_fields = ("message_count", "last_active_at", "created_at")


class MessageSerializer(serializers.ModelSerializer[Message]):
    """Read only; needs `scope` in the context: what the reader may see now."""

    html = serializers.CharField(read_only=True, help_text="Rendered and sanitized; answers only.")
    reply_to = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = Message
        fields = (
            "id",
            "role",
            "content",
            "html",
            "sources",
            "citations",
            "agent_trace",
            "retrieval_log",
            "confidence_score",
            "confidence_band",
            "citation_coverage",
            "invalid_refs",
            "is_fallback",
            "intent",
            "model",
            "status",
            "error_code",
            "run_id",
            "reply_to",
            "version",
            "feedback",
            "response_time_ms",
            "created_at",
        )
        read_only_fields = fields

    def to_representation(self, instance: Message) -> dict[str, Any]:
        return message_view(instance, self.context["scope"])


class FeedbackSerializer(serializers.Serializer[Any]):
    value = serializers.ChoiceField(choices=[1, -1, 0])
    reason = serializers.CharField(max_length=500, required=False, allow_blank=True, default="")


class AskSerializer(serializers.Serializer[Any]):
    """A question. The length of the text is judged by the service, which says it in words."""

    question = serializers.CharField(
        allow_blank=True,
        trim_whitespace=False,
        help_text=f"At most {MAX_QUESTION_CHARS} characters.",
        error_messages={"required": _("Please write a question."), "null": _("Please write a question.")},
    )
    conversation_id = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    kb_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1), required=False, allow_null=True, max_length=1000
    )
    document_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1), required=False, allow_null=True, max_length=1000
    )
