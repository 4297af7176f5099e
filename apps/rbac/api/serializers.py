"""Shapes of the account API."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers

from apps.rbac.models import ApiKey, User
from apps.rbac.permissions import PERMISSIONS


class CredentialsSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=500, trim_whitespace=False, style={"input_type": "password"})


class RefreshSerializer(serializers.Serializer[Any]):
    refresh = serializers.CharField(max_length=4000)


class TokenPairSerializer(serializers.Serializer[Any]):
    access = serializers.CharField(read_only=True)
    refresh = serializers.CharField(read_only=True)
    expires_in = serializers.IntegerField(read_only=True, source="expires_in_s", help_text="Seconds.")


class MeSerializer(serializers.ModelSerializer[User]):
    roles = serializers.SerializerMethodField()
    permissions = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ("id", "username", "display_name", "email", "roles", "permissions")

    def get_roles(self, user: User) -> list[str]:
        return sorted(user.role_codes())

    def get_permissions(self, user: User) -> list[str]:
        codes = user.permission_codes()
        key = self.context.get("key")
        return sorted(codes if key is None else codes & set(key.permission_codes))


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    key = serializers.CharField(read_only=True, default=None, help_text="Shown once, when the key is made.")
    permission_codes = serializers.ListField(
        child=serializers.ChoiceField(choices=sorted(PERMISSIONS)), allow_empty=False
    )
    knowledge_base_ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1), required=False, allow_null=True, default=None
    )

    class Meta:
        model = ApiKey
        fields = (
            "id",
            "name",
            "prefix",
            "key",
            "permission_codes",
            "knowledge_base_ids",
            "created_at",
            "expires_at",
            "last_used_at",
        )
        read_only_fields: ClassVar = ("prefix", "created_at", "last_used_at")

    def validate_expires_at(self, value: Any) -> Any:
        if value is not None and value <= timezone.now():
            raise serializers.ValidationError(_("The date must lie in the future."))
        return value
