from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.aiconfig.declaration import Value
from apps.aiconfig.models import AiConfig
from apps.aiconfig.snapshot import DECLARATIONS


class BoundsSerializer(serializers.Serializer[Any]):
    minimum = serializers.FloatField(allow_null=True)
    maximum = serializers.FloatField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField())


@extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "number"}, {"type": "string"}]})
class ValueField(serializers.Field[Value, Any, Any, AiConfig]):
    """A value in the key's own type, taken as such or as text."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, bool | int | float | str):
            self.fail("invalid")
        return str(data).lower() if isinstance(data, bool) else str(data)

    def to_representation(self, value: Any) -> Any:
        return value

    default_error_messages = {"invalid": "A value is text, a number, true or false."}  # noqa: RUF012 - DRF's form


class ConfigSerializer(serializers.ModelSerializer[AiConfig]):
    """One key: its value in force and its declaration. Only `value` can be written."""

    value = ValueField()
    type = serializers.CharField(source="value_type", read_only=True)
    description = serializers.SerializerMethodField()
    default = serializers.SerializerMethodField("typed_default")
    bounds = serializers.SerializerMethodField()

    class Meta:
        model = AiConfig
        fields = ("key", "value", "type", "category", "description", "default", "bounds", "updated_at")
        read_only_fields = ("key", "category", "updated_at")

    def to_representation(self, instance: AiConfig) -> dict[str, Any]:
        return {**super().to_representation(instance), "value": _typed(instance, instance.value)}

    def get_description(self, config: AiConfig) -> str:
        return gettext(config.description) if config.description else ""

    @extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "number"}, {"type": "string"}]})
    def typed_default(self, config: AiConfig) -> Value:
        return _typed(config, config.default)

    @extend_schema_field(BoundsSerializer)
    def get_bounds(self, config: AiConfig) -> dict[str, Any]:
        return {"minimum": config.minimum, "maximum": config.maximum, "choices": config.choices}


def _typed(config: AiConfig, raw: str) -> Value:
    """The value in force: a row that was damaged by hand counts as its default."""
    declaration = DECLARATIONS.get(config.key)
    if declaration is None:
        return raw
    try:
        return declaration.parse(raw)
    except ValueError:
        return declaration.default
