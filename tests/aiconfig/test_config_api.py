"""GET and PATCH /api/config/."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.aiconfig.models import AiConfig, AiConfigRevision
from apps.aiconfig.services import current_config
from apps.aiconfig.snapshot import DECLARATIONS
from apps.rbac.models import User
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

URL = "/api/config/"


def client_of(*roles: str) -> tuple[APIClient, User]:
    user = UserFactory.create(roles=roles)
    client = APIClient()
    client.force_authenticate(user)
    return client, user


def test_it_lists_every_key_with_its_declaration() -> None:
    client, _ = client_of("SUPER_ADMIN")
    rows: list[dict[str, Any]] = client.get(URL).json()
    assert {row["key"] for row in rows} == set(DECLARATIONS)
    (row,) = [row for row in rows if row["key"] == "mmr.lambda"]
    assert row["value"] == row["default"] == 0.7
    assert row["type"] == "float"
    assert row["category"] == "mmr"
    assert row["description"]
    assert row["bounds"] == {"minimum": 0.0, "maximum": 1.0, "choices": []}


@pytest.mark.parametrize(
    ("key", "given", "in_force"),
    [
        ("mmr.lambda", 0.5, 0.5),
        ("mmr.lambda", "0.5", 0.5),
        ("rerank.top_k", 4, 4),
        ("mmr.enabled", False, False),
        ("llm.chat_model", "qwen-max", "qwen-max"),
        ("grader.mode", "disabled", "disabled"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_change_is_in_force_and_recorded(key: str, given: Any, in_force: Any) -> None:
    client, user = client_of("SUPER_ADMIN")
    response = client.patch(f"{URL}{key}/", {"value": given}, format="json")
    assert response.status_code == 200, response.json()
    assert response.json()["value"] == in_force
    assert getattr(current_config(), DECLARATIONS[key].field_name) == in_force
    revision = AiConfigRevision.objects.get()
    assert revision.changed_by == user
    assert revision.config.key == key


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("mmr.lambda", 1.5),
        ("mmr.lambda", "nan"),
        ("mmr.lambda", "much"),
        ("rerank.top_k", 2.5),
        ("rerank.top_k", True),
        ("mmr.enabled", "maybe"),
        ("grader.mode", "magic"),
        ("mmr.lambda", None),
        ("mmr.lambda", [0.5]),
    ],
)
def test_a_value_that_does_not_fit_is_refused(key: str, given: Any) -> None:
    client, _ = client_of("SUPER_ADMIN")
    response = client.patch(f"{URL}{key}/", {"value": given}, format="json")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"
    row = AiConfig.objects.get(key=key)
    assert row.value == row.default
    assert not AiConfigRevision.objects.exists()


def test_a_change_without_a_value_is_refused() -> None:
    client, _ = client_of("SUPER_ADMIN")
    assert client.patch(f"{URL}mmr.lambda/", {}, format="json").status_code == 400


def test_an_unknown_key_is_not_found() -> None:
    client, _ = client_of("SUPER_ADMIN")
    response = client.patch(f"{URL}no.such_key/", {"value": 1}, format="json")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("role", "read", "write"), [("SUPER_ADMIN", 200, 200), ("KB_ADMIN", 200, 403), ("USER", 403, 403)]
)
def test_reading_and_writing_need_their_codes(role: str, read: int, write: int) -> None:
    client, _ = client_of(role)
    assert client.get(URL).status_code == read
    assert client.get(f"{URL}mmr.lambda/").status_code == read
    assert client.patch(f"{URL}mmr.lambda/", {"value": 0.5}, format="json").status_code == write


def test_a_stranger_is_asked_to_sign_in() -> None:
    assert APIClient().get(URL).status_code == 401


def test_rows_cannot_be_added_or_deleted() -> None:
    client, _ = client_of("SUPER_ADMIN")
    assert client.post(URL, {"key": "x", "value": 1}, format="json").status_code == 405
    assert client.delete(f"{URL}mmr.lambda/").status_code == 405


def test_a_row_damaged_by_hand_shows_the_value_in_force() -> None:
    AiConfig.objects.filter(key="mmr.lambda").update(value="broken")
    client, _ = client_of("SUPER_ADMIN")
    assert client.get(f"{URL}mmr.lambda/").json()["value"] == 0.7
