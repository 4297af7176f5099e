"""Sign-in, refresh with reuse detection, sign-out, API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.rbac import tokens
from apps.rbac.models import ApiKey, LoginSession, User
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


def bearer(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def sign_in(username: str, password: str = PASSWORD) -> Any:
    return APIClient().post("/api/auth/token/", {"username": username, "password": password}, format="json")


def test_it_signs_in_and_says_who_is_calling() -> None:
    user = UserFactory()
    pair = sign_in(user.username).json()
    me = bearer(pair["access"]).get("/api/auth/me/").json()
    assert me["username"] == user.username
    assert me["roles"] == ["USER"]
    assert "chat:ask" in me["permissions"]
    assert "kb:upload" not in me["permissions"]


@pytest.mark.parametrize("password", ["wrong", "", "x" * 600])
def test_it_refuses_a_wrong_password_in_the_one_error_shape(password: str) -> None:
    user = UserFactory()
    response = sign_in(user.username, password)
    assert response.status_code in {400, 401}
    assert set(response.json()["error"]) == {"code", "message", "details"}


def test_it_refuses_an_inactive_user() -> None:
    user = UserFactory(is_active=False)
    assert sign_in(user.username).status_code == 401


def test_it_ends_access_tokens_at_sign_out() -> None:
    pair = tokens.start_session(UserFactory())
    client = bearer(pair.access)
    assert client.post("/api/auth/logout/").status_code == 204
    response = client.get("/api/auth/me/")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "token_not_valid"
    assert "Bearer" in response["WWW-Authenticate"]


def test_it_ends_the_session_when_a_refresh_token_is_used_twice() -> None:
    first = tokens.start_session(UserFactory())
    second = APIClient().post("/api/auth/token/refresh/", {"refresh": first.refresh}, format="json").json()
    assert bearer(second["access"]).get("/api/auth/me/").status_code == 200
    again = APIClient().post("/api/auth/token/refresh/", {"refresh": first.refresh}, format="json")
    assert again.status_code == 401
    assert bearer(second["access"]).get("/api/auth/me/").status_code == 401
    assert LoginSession.objects.get().ended_reason == "refresh token reuse"


def _forged(**changes: Any) -> str:
    claims = {
        "token_type": "access",
        "user_id": "1",
        "sid": "00000000-0000-0000-0000-000000000000",
        "jti": "x",
        "exp": timezone.now() + timedelta(hours=1),
        **changes,
    }
    return jwt.encode(claims, django_settings.SECRET_KEY, algorithm="HS256")


@pytest.mark.parametrize(
    "token",
    [
        "garbage",
        "a.b.c",
        jwt.encode({"user_id": 1}, "another key that is long enough for HS256", algorithm="HS256"),
        jwt.encode({"user_id": 1, "token_type": "access"}, "", algorithm="none"),
        _forged(),
        _forged(sid="not a uuid"),
        _forged(exp=timezone.now() - timedelta(hours=1)),
        "dm-unknown",
    ],
)
def test_it_refuses_forged_and_expired_tokens(token: str) -> None:
    response = bearer(token).get("/api/auth/me/")
    assert response.status_code == 401
    assert set(response.json()["error"]) == {"code", "message", "details"}


def test_it_says_that_a_token_has_expired() -> None:
    expired = _forged(exp=timezone.now() - timedelta(hours=1))
    assert bearer(expired).get("/api/auth/me/").json()["error"]["code"] == "token_expired"


def test_it_refuses_a_refresh_token_as_access_token() -> None:
    pair = tokens.start_session(UserFactory())
    assert bearer(pair.refresh).get("/api/auth/me/").status_code == 401


def test_it_shows_an_api_key_once_and_keeps_only_its_hash() -> None:
    user = UserFactory()
    client = bearer(tokens.start_session(user).access)
    made = client.post("/api/auth/api-keys/", {"name": "ide", "permission_codes": ["kb:read"]}, format="json")
    assert made.status_code == 201
    raw = made.json()["key"]
    assert raw not in str(ApiKey.objects.values().get())
    assert client.get("/api/auth/api-keys/").json()["results"][0]["key"] is None
    assert bearer(raw).get("/api/auth/me/").json()["permissions"] == ["kb:read"]


def test_it_refuses_a_revoked_or_expired_key() -> None:
    user = UserFactory()
    client = bearer(tokens.start_session(user).access)
    key, raw = tokens.create_api_key(user, name="a", permission_codes=["kb:read"])
    assert client.delete(f"/api/auth/api-keys/{key.pk}/").status_code == 204
    assert bearer(raw).get("/api/auth/me/").status_code == 401
    _, old = tokens.create_api_key(
        user, name="b", permission_codes=["kb:read"], expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert bearer(old).get("/api/auth/me/").json()["error"]["code"] == "token_expired"


def test_it_never_grants_a_key_more_than_its_maker_holds() -> None:
    client = bearer(tokens.start_session(UserFactory()).access)
    response = client.post("/api/auth/api-keys/", {"name": "x", "permission_codes": ["config:write"]}, format="json")
    assert response.status_code == 403


def test_a_key_cannot_manage_keys() -> None:
    _, raw = tokens.create_api_key(UserFactory(), name="a", permission_codes=["kb:read"])
    assert bearer(raw).get("/api/auth/api-keys/").status_code == 403


def test_one_user_cannot_revoke_the_key_of_another() -> None:
    key, _ = tokens.create_api_key(UserFactory(), name="a", permission_codes=["kb:read"])
    client = bearer(tokens.start_session(UserFactory()).access)
    assert client.delete(f"/api/auth/api-keys/{key.pk}/").status_code == 404


def test_passwords_are_kept_as_bcrypt_and_old_hashes_are_upgraded(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    user = UserFactory()
    User.objects.filter(pk=user.pk).update(password=make_password(PASSWORD, hasher="md5"))
    assert sign_in(user.username).status_code == 200
    user.refresh_from_db()
    assert user.password.startswith("bcrypt_sha256$")
