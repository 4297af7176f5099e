"""Knowledge bases, documents and search. What the caller may not read does not exist (404)."""

from __future__ import annotations

from typing import Any, cast

from asgiref.sync import async_to_sync
from django.db.models import Count, QuerySet
from django.http import FileResponse
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.throttling import ScopedRateThrottle
from rest_framework.views import APIView

from apps.aiconfig.providers.registry import current_providers
from apps.aiconfig.services import current_config
from apps.kb import services
from apps.kb.access import resolve_scope
from apps.kb.api.serializers import (
    ChunkSerializer,
    ContentSerializer,
    DocumentSerializer,
    KnowledgeBaseSerializer,
    SearchResultSerializer,
    SearchSerializer,
    UploadSerializer,
    search_body,
)
from apps.kb.models import Chunk, Document, KnowledgeBase
from apps.kb.retrieval.search import search
from apps.kb.retrieval.types import SearchRequest
from apps.rbac.api.authentication import caller_of
from apps.rbac.scope import AccessScope
from docmind.errors import DocMindError
from docmind.vectors import get_vector_store


class ScopedView(APIView):
    """A view that knows its caller's AccessScope; it is resolved once a request."""

    request: Request

    @cached_property
    def scope(self) -> AccessScope:
        caller = caller_of(self.request)
        return resolve_scope(caller.user, caller.key)

    def require(self, code: str, kb_id: int | None = None) -> None:
        """The caller must hold the code and, where a knowledge base is named, manage it."""
        if code not in self.scope.permissions or (kb_id is not None and not self.scope.can_manage(kb_id)):
            raise PermissionDenied(_("You are not allowed to do this."))


class KnowledgeBaseViewSet(ScopedView, viewsets.ModelViewSet[KnowledgeBase]):
    serializer_class = KnowledgeBaseSerializer
    queryset = KnowledgeBase.objects.none()
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012 -- Django types it as a list
    permission_classes = (IsAuthenticated,)
    filterset_fields = ("visibility",)
    ordering_fields = (
        "name",
        "updated_at",
        "created_at",
    )

    def get_queryset(self) -> QuerySet[KnowledgeBase]:
        if getattr(self, "swagger_fake_view", False):
            return KnowledgeBase.objects.none()
        readable = KnowledgeBase.objects.filter(pk__in=self.scope.readable_kb_ids)
        return readable.annotate(document_total=Count("documents")).order_by("name", "id")

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        return context if getattr(self, "swagger_fake_view", False) else {**context, "scope": self.scope}

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self.require("kb:upload")
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        created = services.create_knowledge_base(caller_of(request).user, **serializer.validated_data)
        del self.scope
        return Response(self.get_serializer(self.get_queryset().get(pk=created.pk)).data, status=201)

    def perform_update(self, serializer: BaseSerializer[KnowledgeBase]) -> None:
        knowledge_base = cast(KnowledgeBase, serializer.instance)
        self.require("kb:update", knowledge_base.pk)
        services.update_knowledge_base(knowledge_base, **serializer.validated_data)

    def perform_destroy(self, instance: KnowledgeBase) -> None:
        self.require("kb:delete", instance.pk)
        services.delete_knowledge_base(instance)


class DocumentListView(ScopedView):
    """The documents of a knowledge base, and upload into it."""

    serializer_class = DocumentSerializer
    throttle_classes = (ScopedRateThrottle,)

    def get_throttles(self) -> Any:
        self.throttle_scope = "upload" if self.request.method == "POST" else None
        return super().get_throttles()

    def knowledge_base(self, kb_id: int) -> KnowledgeBase:
        return get_object_or_404(KnowledgeBase, pk=kb_id, pk__in=self.scope.readable_kb_ids)

    @extend_schema(responses=DocumentSerializer(many=True), operation_id="kb_knowledge_base_documents_list")
    def get(self, request: Request, kb_id: int) -> Response:
        documents = Document.objects.filter(knowledge_base=self.knowledge_base(kb_id))
        if status := request.query_params.get("status"):
            documents = documents.filter(status=status)
        if name := request.query_params.get("name"):
            documents = documents.filter(source_name__icontains=name)
        return paginated(self, documents.order_by("-created_at", "-id"), DocumentSerializer)

    @extend_schema(
        request={"multipart/form-data": UploadSerializer},
        responses={202: DocumentSerializer(many=True)},
        operation_id="kb_knowledge_base_documents_upload",
    )
    def post(self, request: Request, kb_id: int) -> Response:
        """Upload one file (the answer is its document) or several (a list, each a document or an error)."""
        knowledge_base = self.knowledge_base(kb_id)
        self.require("kb:upload", knowledge_base.pk)
        given = UploadSerializer(data={"file": request.FILES.getlist("file")})
        given.is_valid(raise_exception=True)
        files = given.validated_data["file"]
        user = caller_of(request).user
        if len(files) == 1:
            document = services.upload_document(knowledge_base, user=user, name=files[0].name, file=files[0])
            return Response(DocumentSerializer(document).data, status=202)
        outcomes: list[dict[str, Any]] = []
        for file in files:
            try:
                document = services.upload_document(knowledge_base, user=user, name=file.name, file=file)
                outcomes.append(dict(DocumentSerializer(document).data))
            except DocMindError as error:
                outcomes.append({"source_name": file.name, "error_code": error.code, "error": error.message})
        return Response(outcomes, status=202)


class DocumentViewSet(
    ScopedView, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[Document]
):
    serializer_class = DocumentSerializer
    queryset = Document.objects.none()
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Document]:
        if getattr(self, "swagger_fake_view", False):
            return Document.objects.none()
        return Document.objects.filter(knowledge_base__in=self.scope.readable_kb_ids).select_related("knowledge_base")

    def perform_destroy(self, instance: Document) -> None:
        self.require("kb:delete", instance.knowledge_base_id)
        services.delete_document(instance)

    @extend_schema(responses=ChunkSerializer(many=True))
    @action(detail=True, methods=["get"])
    def chunks(self, request: Request, pk: str) -> Response:
        """Live chunks in order: children carry their parent's id, parents have none and no vector."""
        chunks = Chunk.objects.filter(document=self.get_object(), live=True).order_by("chunk_index", "id")
        return paginated(self, chunks, ChunkSerializer)

    @extend_schema(responses=ContentSerializer)
    @action(detail=True, methods=["get"])
    def content(self, request: Request, pk: str) -> Response:
        """The document as Markdown: what all character offsets refer to."""
        document = self.get_object()
        pages = [{"number": page.number, "start": page.start} for page in services.document_pages(document)]
        return Response({"markdown": services.read_markdown(document), "pages": pages})

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    @action(detail=True, methods=["get"])
    def original(self, request: Request, pk: str) -> FileResponse:
        """The file as it was uploaded."""
        document = self.get_object()
        response = FileResponse(
            services.open_original(document),
            as_attachment=True,
            filename=document.source_name,
            content_type="application/octet-stream",
        )
        response["X-Content-Type-Options"] = "nosniff"
        return response

    @extend_schema(request=None, responses={202: DocumentSerializer})
    @action(detail=True, methods=["post"])
    def reingest(self, request: Request, pk: str) -> Response:
        document = self.get_object()
        self.require("kb:update", document.knowledge_base_id)
        services.reingest_document(document)
        document.refresh_from_db()
        return Response(self.get_serializer(document).data, status=202)

    @extend_schema(request=None, responses={202: DocumentSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        document = self.get_object()
        self.require("kb:update", document.knowledge_base_id)
        services.cancel_document(document)
        document.refresh_from_db()
        return Response(self.get_serializer(document).data, status=202)


class SearchView(ScopedView):
    """Search without an answer: the passages that a question would rest on."""

    @extend_schema(request=SearchSerializer, responses=SearchResultSerializer)
    def post(self, request: Request) -> Response:
        self.require("kb:read")
        given = SearchSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        scope = self.scope
        if "kb_ids" in asked:
            if unknown := set(asked["kb_ids"]) - scope.readable_kb_ids:
                raise NotFound(_("Unknown knowledge base: %(ids)s") % {"ids": ", ".join(map(str, sorted(unknown)))})
            scope = scope.narrow(asked["kb_ids"])
        documents = frozenset(asked["document_ids"]) if "document_ids" in asked else None
        wanted = SearchRequest(
            query=asked["query"],
            scope=scope,
            mode=asked["mode"],
            document_ids=documents,
            top_k=asked.get("top_k"),
            fit_prompt=False,
        )
        result = async_to_sync(search)(
            wanted, config=current_config(), embedder=current_providers().embedder, vectors=get_vector_store()
        )
        return Response(search_body(asked["query"], asked["mode"], result))


def paginated(view: APIView, queryset: QuerySet[Any], serializer: type[BaseSerializer[Any]]) -> Response:
    """One page of rows in the API's pagination."""
    paginator = view.settings.DEFAULT_PAGINATION_CLASS()
    page = paginator.paginate_queryset(queryset, view.request, view=view)
    response: Response = paginator.get_paginated_response(serializer(page, many=True).data)
    return response
