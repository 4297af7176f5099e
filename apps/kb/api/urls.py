from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.kb.api import views

router = SimpleRouter()
router.register("knowledge-bases", views.KnowledgeBaseViewSet, basename="api-knowledge-base")
router.register("documents", views.DocumentViewSet, basename="api-document")

urlpatterns = [
    path("knowledge-bases/<int:kb_id>/documents/", views.DocumentListView.as_view(), name="api-document-list"),
    path("search/", views.SearchView.as_view(), name="api-search"),
    *router.urls,
]
