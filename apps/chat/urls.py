"""Addresses of the chat pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.chat import pages

urlpatterns: list[URLPattern] = [
    path("", pages.start, name="start"),
    path("chat/", pages.chat, name="chat"),
    path("chat/<int:conversation_id>/", pages.conversation, name="conversation"),
    path("chat/messages/<int:message_id>/html/", pages.message_html, name="message-html"),
]
