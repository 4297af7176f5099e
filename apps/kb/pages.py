"""Pages of knowledge bases and documents. What the user may not read does not exist here (404)."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from apps.aiconfig.services import current_config
from apps.kb import services
from apps.kb.access import resolve_scope
from apps.kb.api.serializers import DocumentSerializer
from apps.kb.models import Document, KnowledgeBase
from apps.kb.passage import clamp_passage, render_part
from apps.kb.progress import progress_stream
from apps.rbac.pages import render_page, signed_in_user
from apps.rbac.scope import AccessScope
from docmind.errors import DocMindError

DOCUMENTS_A_PAGE: Final = 50
"""The page size of the API, so that page N here is page N there."""


@login_required
@require_safe
def knowledge_bases(request: HttpRequest) -> HttpResponse:
    """All knowledge bases that the user may read, with their counts."""
    scope = resolve_scope(signed_in_user(request))
    rows = KnowledgeBase.objects.filter(pk__in=scope.readable_kb_ids).select_related("owner")
    context = {
        "section": "kb",
        "knowledge_bases": rows.annotate(document_total=Count("documents")).order_by("name", "id"),
        "can_create": "kb:upload" in scope.permissions,
        "visibilities": KnowledgeBase.Visibility.choices,
    }
    return render_page(request, "kb/knowledge_bases.html", context)


@login_required
@require_safe
def knowledge_base(request: HttpRequest, kb_id: int) -> HttpResponse:
    """One knowledge base: upload, and its documents a page at a time, newest first."""
    scope = resolve_scope(signed_in_user(request))
    shown = _readable_knowledge_base(scope, kb_id)
    rows = Document.objects.filter(knowledge_base=shown).order_by("-created_at", "-id")
    page = Paginator(rows, DOCUMENTS_A_PAGE).get_page(request.GET.get("page"))
    documents = [dict(DocumentSerializer(document).data) for document in page]
    context = {
        "section": "kb",
        "knowledge_base": shown,
        "page": page,
        "documents": documents,
        "max_file_mb": current_config().ingest_max_file_mb,
        "visibilities": KnowledgeBase.Visibility.choices,
        **_rights(scope, kb_id),
    }
    return render_page(request, "kb/knowledge_base.html", context)


@login_required
@require_safe
def document(request: HttpRequest, document_id: int) -> HttpResponse:
    """A document's Markdown, rendered; `start` and `end` mark a passage of it."""
    scope = resolve_scope(signed_in_user(request))
    shown = get_object_or_404(
        Document.objects.select_related("knowledge_base"),
        pk=document_id,
        knowledge_base_id__in=scope.readable_kb_ids,
    )
    context: dict[str, Any] = {
        "section": "kb",
        "document": shown,
        "knowledge_base": shown.knowledge_base,
        "original_address": f"/api/kb/documents/{shown.pk}/original/",
    }
    try:
        markdown = services.read_markdown(shown)
    except DocMindError as error:
        context["unavailable"] = error.message
        return render_page(request, "kb/document.html", context)
    asked = (_number(request, "start"), _number(request, "end"))
    passage = clamp_passage(markdown, *asked)
    context["part"] = render_part(markdown, number=_number(request, "part") or 1, passage=passage)
    context["passage_lost"] = passage is None and None not in asked
    return render_page(request, "kb/document.html", context)


@login_required
@require_safe
def progress(request: HttpRequest, kb_id: int) -> HttpResponseBase:
    """Server-sent events: how the documents of a knowledge base get on."""
    _readable_knowledge_base(resolve_scope(signed_in_user(request)), kb_id)
    return progress_stream(request, kb_id)


def _readable_knowledge_base(scope: AccessScope, kb_id: int) -> KnowledgeBase:
    if not scope.can_read(kb_id):
        raise Http404
    annotated = KnowledgeBase.objects.select_related("owner").annotate(document_total=Count("documents"))
    return get_object_or_404(annotated, pk=kb_id)


def _rights(scope: AccessScope, kb_id: int) -> dict[str, bool]:
    """Which actions the page offers; the API checks them again."""
    manages = scope.can_manage(kb_id)
    return {f"can_{verb}": manages and f"kb:{verb}" in scope.permissions for verb in ("upload", "update", "delete")}


def _number(request: HttpRequest, name: str) -> int | None:
    raw = request.GET.get(name, "")
    return int(raw) if raw.isdecimal() and raw.isascii() and len(raw) < 16 else None
