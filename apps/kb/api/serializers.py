"""Shapes of the knowledge-base API."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext
from rest_framework import serializers

from apps.kb.models import Chunk, Document, KnowledgeBase
from apps.kb.retrieval.types import RetrievalResult
from apps.rbac.scope import AccessScope

MAX_QUERY_CHARS = 8000


class KnowledgeBaseSerializer(serializers.ModelSerializer[KnowledgeBase]):
    """Needs `scope` in its context, and `document_total` annotated on the row."""

    document_count = serializers.IntegerField(source="document_total", read_only=True, default=0)
    can_manage = serializers.SerializerMethodField()

    class Meta:
        model = KnowledgeBase
        fields = (
            "id",
            "name",
            "description",
            "visibility",
            "owner",
            "version",
            "document_count",
            "chunk_count",
            "can_manage",
            "created_at",
            "updated_at",
        )
        read_only_fields: ClassVar = ("owner", "version", "chunk_count")

    def get_can_manage(self, knowledge_base: KnowledgeBase) -> bool:
        scope: AccessScope = self.context["scope"]
        return scope.can_manage(knowledge_base.pk)


class DocumentSerializer(serializers.ModelSerializer[Document]):
    error = serializers.SerializerMethodField(help_text="Why it failed or waits, in the reader's language.")

    class Meta:
        model = Document
        fields = (
            "id",
            "knowledge_base",
            "source_name",
            "mime_type",
            "size_bytes",
            "sha256",
            "status",
            "progress",
            "error_code",
            "error",
            "page_count",
            "chunk_count",
            "parser",
            "uploaded_by",
            "created_at",
            "updated_at",
            "published_at",
        )
        read_only_fields = fields

    def get_error(self, document: Document) -> str:
        return gettext(document.error) if document.error else ""


class UploadSerializer(serializers.Serializer[Any]):
    file = serializers.ListField(child=serializers.FileField(allow_empty_file=True), allow_empty=False, max_length=100)


class ChunkSerializer(serializers.ModelSerializer[Chunk]):
    class Meta:
        model = Chunk
        fields = (
            "id",
            "chunk_index",
            "parent_chunk",
            "content",
            "lang",
            "content_type",
            "heading_path",
            "page",
            "start_char",
            "end_char",
            "tags",
            "vector_state",
        )
        read_only_fields = fields


class PageStartSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    start = serializers.IntegerField()


class ContentSerializer(serializers.Serializer[Any]):
    markdown = serializers.CharField()
    pages = PageStartSerializer(many=True)


class SearchSerializer(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    kb_ids = serializers.ListField(child=serializers.IntegerField(min_value=1), required=False, max_length=200)
    document_ids = serializers.ListField(child=serializers.IntegerField(min_value=1), required=False, max_length=200)
    mode = serializers.ChoiceField(choices=["hybrid", "vector", "keyword"], default="hybrid")
    top_k = serializers.IntegerField(min_value=1, max_value=50, required=False)


class SearchHitSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="0 to 1.")
    chunk_id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    knowledge_base_id = serializers.IntegerField()
    document_name = serializers.CharField()
    heading_path = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    content = serializers.CharField()
    start = serializers.IntegerField(help_text="Characters in the document's Markdown.")
    end = serializers.IntegerField()
    child_start = serializers.IntegerField(help_text="The passage that was hit, inside `content`'s document.")
    child_end = serializers.IntegerField()
    lang = serializers.CharField()


class DegradationSerializer(serializers.Serializer[Any]):
    part = serializers.CharField()
    reason = serializers.CharField()


class StageTimingSerializer(serializers.Serializer[Any]):
    stage = serializers.CharField()
    ms = serializers.FloatField()


class SearchResultSerializer(serializers.Serializer[Any]):
    query = serializers.CharField()
    mode = serializers.CharField()
    rerank_model = serializers.CharField()
    results = SearchHitSerializer(many=True)
    degraded = DegradationSerializer(many=True)
    timings = StageTimingSerializer(many=True)


def search_body(query: str, mode: str, result: RetrievalResult) -> dict[str, Any]:
    """The response of a search."""
    hits = [
        {
            "rank": rank,
            "score": round(chunk.rerank_score, 6),
            "chunk_id": chunk.chunk_id,
            "document_id": chunk.document_id,
            "knowledge_base_id": chunk.knowledge_base_id,
            "document_name": chunk.document_name,
            "heading_path": chunk.heading_path,
            "page": chunk.page,
            "content": chunk.content,
            "start": chunk.start_char,
            "end": chunk.end_char,
            "child_start": chunk.child_start,
            "child_end": chunk.child_end,
            "lang": chunk.lang,
        }
        for rank, chunk in enumerate(result.chunks, start=1)
    ]
    return {
        "query": query,
        "mode": mode,
        "rerank_model": result.rerank_model,
        "results": hits,
        "degraded": [{"part": item.part, "reason": item.reason} for item in result.degraded],
        "timings": [{"stage": item.stage, "ms": round(item.ms, 2)} for item in result.timings],
    }
