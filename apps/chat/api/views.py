"""Conversations, their messages, and feedback."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from apps.chat import services
from apps.chat.api.serializers import ConversationSerializer, FeedbackSerializer, MessageSerializer
from apps.chat.models import Conversation
from apps.kb.access import resolve_scope
from apps.rbac.api.authentication import caller_of
from apps.rbac.api.permissions import HasCode
from apps.rbac.scope import AccessScope
from docmind.api import PageNumberPagination
from docmind.errors import PermanentError


def _scope(request: Request) -> AccessScope:
    caller = caller_of(request)
    return resolve_scope(caller.user, caller.key)


class ConversationViewSet(viewsets.ModelViewSet[Conversation]):
    """The caller's own conversations."""

    serializer_class = ConversationSerializer
    permission_classes = (HasCode,)
    required_codes: ClassVar = {"*": "chat:history", "POST": "chat:ask"}
    queryset = Conversation.objects.none()
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012 -- a list in Django's type
    ordering_fields = ("last_active_at", "created_at", "title")
    lookup_value_regex = r"\d+"

    def get_queryset(self) -> QuerySet[Conversation]:
        if getattr(self, "swagger_fake_view", False):
            return Conversation.objects.none()
        return services.conversations_of(caller_of(self.request).user)

    def get_object(self) -> Conversation:
        number = str(self.kwargs["pk"])
        if len(number) > 18:
            raise PermanentError("There is no such conversation.", code="not_found")
        return services.get_conversation(caller_of(self.request).user, int(number))

    def perform_create(self, serializer: BaseSerializer[Conversation]) -> None:
        serializer.instance = services.create_conversation(
            caller_of(self.request).user, scope=_scope(self.request), **serializer.validated_data
        )

    def perform_update(self, serializer: BaseSerializer[Conversation]) -> None:
        serializer.instance = services.update_conversation(
            self.get_object(), scope=_scope(self.request), **serializer.validated_data
        )

    def perform_destroy(self, instance: Conversation) -> None:
        services.delete_conversation(instance)

    @extend_schema(responses=MessageSerializer(many=True))
    @action(detail=True, methods=["get"], filter_backends=[])
    def messages(self, request: Request, pk: str) -> Response:
        """The messages, oldest first; sources that may no longer be read are hidden."""
        pages = PageNumberPagination()
        page = pages.paginate_queryset(services.list_messages(self.get_object()), request, view=self)
        context = {**self.get_serializer_context(), "scope": _scope(request)}
        return pages.get_paginated_response(MessageSerializer(page or (), many=True, context=context).data)


class FeedbackView(APIView):
    """Thumbs up (1), thumbs down (-1), or neither (0) on an answer."""

    permission_classes = (HasCode,)
    required_codes: ClassVar = {"*": "chat:ask"}

    @extend_schema(request=FeedbackSerializer, responses=FeedbackSerializer)
    def post(self, request: Request, message_id: int, **kwargs: Any) -> Response:
        given = FeedbackSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        message = services.set_feedback(caller_of(request).user, message_id, **given.validated_data)
        return Response({"value": message.feedback or 0, "reason": message.feedback_reason})
