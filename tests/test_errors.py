"""Errors that no view answers: one shape below /api/, a page elsewhere, no details of the inside in either."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory, override_settings

from docmind import error_pages
from docmind.middleware import RequestIdMiddleware
from tests.factories import UserFactory


@pytest.mark.parametrize("path", ["/api/none/", "/api/kb/none/1/", "/api/chat/runs/not-a-uuid/events/"])
def test_an_unknown_address_of_the_api_is_told_in_its_shape(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


@pytest.mark.django_db
def test_an_unknown_page_is_a_readable_page(client: Client) -> None:
    client.force_login(UserFactory())
    response = client.get("/nowhere/")
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/api/auth/token/", "/api/auth/token/refresh/"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(path: str) -> None:
    body = {"username": "x" * 3_000_000, "refresh": "x" * 3_000_000}
    response = Client().post(path, body, content_type="application/json")
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"


@override_settings(ALLOWED_HOSTS=["docmind.example.com"])
def test_a_host_that_is_not_served_is_a_bad_request() -> None:
    response = Client(headers={"host": "evil.example.com"}).get("/api/auth/me/")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"


def test_a_fault_of_the_server_says_nothing_of_the_inside() -> None:
    requests = RequestFactory()
    assert b'"internal_error"' in error_pages.server_error(requests.get("/api/x/")).content  # type: ignore[attr-defined]
    page = error_pages.server_error(requests.get("/chat/"))
    assert page.status_code == 500
    assert page["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("given", "is_kept"), [("client-id-12345", True), ("short", False), ("with space\r\nX-Evil: 1", False), ("", False)]
)
@pytest.mark.django_db
def test_a_request_id_is_kept_only_where_it_looks_like_one(given: str, is_kept: bool) -> None:
    assert RequestIdMiddleware.async_capable
    response = Client().get("/api/health/live/", headers={"X-Request-Id": given})
    assert (response["X-Request-Id"] == given) is is_kept
    assert len(response["X-Request-Id"]) >= 8
