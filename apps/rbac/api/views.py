"""Sign-in, refresh, sign-out, who am I, and personal API keys."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth import authenticate
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import ScopedRateThrottle
from rest_framework.views import APIView

from apps.rbac import tokens
from apps.rbac.api.authentication import caller_of
from apps.rbac.api.serializers import (
    ApiKeySerializer,
    CredentialsSerializer,
    MeSerializer,
    RefreshSerializer,
    TokenPairSerializer,
)
from apps.rbac.models import ApiKey, User


class SignInView(APIView):
    """Exchange a user name and password for an access and a refresh token."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (ScopedRateThrottle,)
    throttle_scope = "sign-in"

    @extend_schema(request=CredentialsSerializer, responses=TokenPairSerializer)
    def post(self, request: Request) -> Response:
        credentials = CredentialsSerializer(data=request.data)
        credentials.is_valid(raise_exception=True)
        user = authenticate(request, **credentials.validated_data)
        if not isinstance(user, User):
            raise AuthenticationFailed(_("The user name or password is wrong."), code="wrong_credentials")
        pair = tokens.start_session(
            user, address=request.META.get("REMOTE_ADDR") or None, user_agent=request.headers.get("User-Agent", "")
        )
        return Response(TokenPairSerializer(pair).data)

    def get_authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="docmind"'


class RefreshView(APIView):
    """Exchange a refresh token for a new pair; the old refresh token is spent."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (ScopedRateThrottle,)
    throttle_scope = "sign-in"

    @extend_schema(request=RefreshSerializer, responses=TokenPairSerializer)
    def post(self, request: Request) -> Response:
        given = RefreshSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        return Response(TokenPairSerializer(tokens.refresh_session(given.validated_data["refresh"])).data)

    def get_authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="docmind"'


class SignOutView(APIView):
    """End the session of the access token in use."""

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request) -> Response:
        if isinstance(request.auth, uuid.UUID):
            tokens.end_session(request.auth, reason="signed out")
        return Response(status=204)


class MeView(APIView):
    """The caller, with roles and permissions."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        return Response(MeSerializer(caller.user, context={"key": caller.key}).data)


class ApiKeyViewSet(
    mixins.CreateModelMixin,
    mixins.ListModelMixin,
    mixins.DestroyModelMixin,
    viewsets.GenericViewSet[ApiKey],
):
    """The caller's own API keys. A key can neither see nor make keys."""

    serializer_class = ApiKeySerializer
    queryset = ApiKey.objects.none()
    filter_backends = ()

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if isinstance(request.auth, ApiKey):
            raise PermissionDenied(_("API keys are managed with a password sign-in."))

    def get_queryset(self) -> QuerySet[ApiKey]:
        if getattr(self, "swagger_fake_view", False):
            return ApiKey.objects.none()
        return ApiKey.objects.filter(user=caller_of(self.request).user, revoked_at=None).order_by("-id")

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = caller_of(request).user
        beyond = set(serializer.validated_data["permission_codes"]) - user.permission_codes()
        if beyond:
            raise PermissionDenied(_("You do not hold: %(codes)s") % {"codes": ", ".join(sorted(beyond))})
        key, raw = tokens.create_api_key(user, **serializer.validated_data)
        return Response({**self.get_serializer(key).data, "key": raw}, status=201)

    def perform_destroy(self, instance: ApiKey) -> None:
        ApiKey.objects.filter(pk=instance.pk).update(revoked_at=timezone.now())
