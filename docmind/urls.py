"""All addresses: pages, API, admin."""

from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from docmind import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("img/logo.svg"))),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/auth/", include("apps.rbac.api.urls")),
    path("api/config/", include("apps.aiconfig.api.urls")),
    path("api/kb/", include("apps.kb.api.urls")),
    path("api/chat/", include("apps.chat.api.urls")),
    path("api/health/live/", health.live, name="health-live"),
    path("api/health/ready/", health.ready, name="health-ready"),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
    path("", include("apps.rbac.urls")),
    path("", include("apps.kb.urls")),
    path("", include("apps.chat.urls")),
]

handler400 = "docmind.error_pages.bad_request"
handler403 = "docmind.error_pages.permission_denied"
handler404 = "docmind.error_pages.page_not_found"
handler500 = "docmind.error_pages.server_error"
