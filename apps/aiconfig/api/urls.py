from __future__ import annotations

from rest_framework.routers import SimpleRouter

from apps.aiconfig.api.views import ConfigViewSet

router = SimpleRouter()
router.register("", ConfigViewSet, basename="config")

urlpatterns = router.urls
