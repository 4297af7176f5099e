from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.rbac.api import views

router = SimpleRouter()
router.register("api-keys", views.ApiKeyViewSet, basename="api-key")

urlpatterns = [
    path("token/", views.SignInView.as_view(), name="token"),
    path("token/refresh/", views.RefreshView.as_view(), name="token-refresh"),
    path("logout/", views.SignOutView.as_view(), name="logout"),
    path("me/", views.MeView.as_view(), name="me"),
    *router.urls,
]
