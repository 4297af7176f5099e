"""Django admin for knowledge bases, documents, chunks, grants and term statistics."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.kb import services
from apps.kb.models import AccessGrant, Chunk, Document, KnowledgeBase, TermStat


class AccessGrantInline(admin.TabularInline[AccessGrant, KnowledgeBase]):
    model = AccessGrant
    extra = 0
    autocomplete_fields = ("user", "role")


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(admin.ModelAdmin[KnowledgeBase]):
    list_display = ("name", "visibility", "owner", "chunk_count", "version", "updated_at")
    list_filter = ("visibility",)
    list_select_related = ("owner",)
    search_fields = ("name", "description")
    autocomplete_fields = ("owner",)
    readonly_fields = ("version", "embedding_fingerprint", "chunk_count", "term_total", "created_at", "updated_at")
    inlines = (AccessGrantInline,)

    def delete_model(self, request: HttpRequest, obj: KnowledgeBase) -> None:
        services.delete_knowledge_base(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[KnowledgeBase]) -> None:
        for knowledge_base in queryset:
            services.delete_knowledge_base(knowledge_base)


class WrittenByIngestion(admin.ModelAdmin[Any]):
    """Rows that only ingestion writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Document)
class DocumentAdmin(WrittenByIngestion):
    list_display = ("source_name", "knowledge_base", "status", "progress_percent", "chunk_count", "error", "updated_at")
    list_filter = ("status", "knowledge_base")
    list_select_related = ("knowledge_base",)
    search_fields = ("source_name", "source_path")
    actions = (
        "ingest_again",
        "cancel",
    )

    @admin.display(description=_("progress"), ordering="progress")
    def progress_percent(self, document: Document) -> str:
        return f"{document.progress:.0%}"

    def delete_model(self, request: HttpRequest, obj: Document) -> None:
        services.delete_document(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        for document in queryset:
            services.delete_document(document)

    @admin.action(description=_("Ingest again"), permissions=["delete"])
    def ingest_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        for document in queryset:
            services.reingest_document(document)
        count = len(queryset)
        messages.success(request, ngettext("%d document is queued.", "%d documents are queued.", count) % count)

    @admin.action(description=_("Cancel ingestion"), permissions=["delete"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        for document in queryset:
            services.cancel_document(document)


@admin.register(Chunk)
class ChunkAdmin(WrittenByIngestion):
    list_display = ("id", "source_file_name", "chunk_index", "lang", "content_type", "vector_state", "live")
    list_filter = ("live", "lang", "content_type", "vector_state", "knowledge_base")
    search_fields = ("source_file_name", "heading_path")
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AccessGrant)
class AccessGrantAdmin(admin.ModelAdmin[AccessGrant]):
    list_display = ("knowledge_base", "user", "role", "level", "created_at")
    list_filter = ("level",)
    list_select_related = ("knowledge_base", "user", "role")
    search_fields = ("knowledge_base__name", "user__username", "role__code")
    autocomplete_fields = ("knowledge_base", "user", "role")


@admin.register(TermStat)
class TermStatAdmin(WrittenByIngestion):
    list_display = ("knowledge_base", "term", "document_frequency")
    list_filter = ("knowledge_base",)
    search_fields = ("term",)
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
