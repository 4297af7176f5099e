"""Conversations and messages to look at, MCP tools to switch."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.chat.models import Conversation, McpTool, Message


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """What people wrote is not edited here; deleting stays possible."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "user", "message_count", "last_active_at", "created_at")
    list_select_related = ("user",)
    search_fields = ("title", "user__username")


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "conversation",
        "role",
        "status",
        "confidence_band",
        "is_fallback",
        "feedback",
        "model",
        "response_time_ms",
        "created_at",
    )
    list_filter = ("role", "status", "confidence_band", "is_fallback", "feedback", "model")
    list_select_related = ("conversation",)
    search_fields = ("content", "=run_id")


@admin.register(McpTool)
class McpToolAdmin(admin.ModelAdmin[McpTool]):
    list_display = ("name", "enabled", "call_count", "avg_latency_ms", "last_error", "updated_at")
    list_editable = ("enabled",)
    list_filter = ("enabled",)
    search_fields = ("name",)
    readonly_fields = ("call_count", "avg_latency_ms", "last_error", "updated_at")
