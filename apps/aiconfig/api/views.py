"""Hot configuration over HTTP: list, read, change one value."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from apps.aiconfig.api.serializers import ConfigSerializer
from apps.aiconfig.models import AiConfig
from apps.aiconfig.services import set_config
from apps.aiconfig.snapshot import DECLARATIONS
from apps.rbac.api.authentication import caller_of
from apps.rbac.api.permissions import HasCode


class ConfigViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[AiConfig]):
    """All keys that DocMind declares, in one page."""

    serializer_class = ConfigSerializer
    permission_classes = (HasCode,)
    required_codes: ClassVar[dict[str, str]] = {"*": "config:read", "PATCH": "config:write"}
    pagination_class = None
    filterset_fields = ("category",)
    lookup_field = "key"
    lookup_value_regex = r"[a-z0-9_.]+"

    def get_queryset(self) -> QuerySet[AiConfig]:
        return AiConfig.objects.filter(key__in=DECLARATIONS)

    @extend_schema(request=ConfigSerializer, responses=ConfigSerializer)
    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change the value. It is in force in every process within a second, for answers that begin after it."""
        config = self.get_object()
        given = self.get_serializer(config, data=request.data)
        given.is_valid(raise_exception=True)
        changed = set_config(config.key, given.validated_data["value"], user=caller_of(request).user)
        return Response(self.get_serializer(changed).data)
