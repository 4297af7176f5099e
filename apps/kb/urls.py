"""Addresses of the knowledge-base pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.kb import pages

urlpatterns: list[URLPattern] = [
    path("kb/", pages.knowledge_bases, name="knowledge-bases"),
    path("kb/<int:kb_id>/", pages.knowledge_base, name="knowledge-base"),
    path("kb/<int:kb_id>/events/", pages.progress, name="knowledge-base-events"),
    path("kb/documents/<int:document_id>/", pages.document, name="document"),
]
