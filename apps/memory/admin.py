"""Django admin for memories: counts and types, never the text, which belongs to the user."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.memory.models import UserMemory


@admin.register(UserMemory)
class UserMemoryAdmin(admin.ModelAdmin[UserMemory]):
    list_display = ("id", "user", "type", "importance", "access_count", "invalidated_at", "created_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__username",)
    exclude = ("content",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
