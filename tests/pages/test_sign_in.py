"""Sign-in and sign-out pages, their headers, and the pages of errors."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache
from django.test import Client
from rest_framework.throttling import ScopedRateThrottle

from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


def test_it_leads_signed_out_visitors_to_sign_in_and_back() -> None:
    user = UserFactory()
    client = Client()
    response = client.get("/kb/")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=/kb/"
    response = client.post("/sign-in/", {"username": user.username, "password": PASSWORD, "next": "/kb/"})
    assert response["Location"] == "/kb/"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_it_never_leads_to_another_site(target: str) -> None:
    user = UserFactory()
    response = Client().post("/sign-in/", {"username": user.username, "password": PASSWORD, "next": target})
    assert response["Location"] == "/chat/"


@pytest.mark.parametrize(
    ("language", "expected"), [("zh-hans", "用户名和密码不匹配"), ("en", "do not belong together")]
)
def test_it_says_readably_that_the_password_is_wrong(language: str, expected: str) -> None:
    user = UserFactory()
    client = Client(headers={"accept-language": language})
    response = client.post("/sign-in/", {"username": user.username, "password": "wrong"})
    assert response.status_code == 200
    assert expected in response.content.decode()
    assert "wrong" not in response.content.decode().replace("went wrong", "")


def test_it_slows_down_guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ScopedRateThrottle.THROTTLE_RATES, "sign-in", "30/min")
    cache.clear()
    user = UserFactory(password="short-lived")
    client = Client(headers={"accept-language": "en"})
    statuses = [client.post("/sign-in/", {"username": f"nobody{n}", "password": "x"}).status_code for n in range(31)]
    assert statuses[:30] == [200] * 30
    response = client.post("/sign-in/", {"username": user.username, "password": "short-lived"})
    assert response.status_code == 429
    assert "Too many attempts" in response.content.decode()
    cache.clear()


def test_it_refuses_an_account_that_is_switched_off() -> None:
    user = UserFactory(is_active=False)
    response = Client().post("/sign-in/", {"username": user.username, "password": PASSWORD})
    assert response.status_code == 200
    assert Client().get("/chat/").status_code == 302


def test_it_signs_out_by_post_only() -> None:
    client = Client()
    client.force_login(UserFactory())
    assert client.get("/sign-out/").status_code == 405
    assert client.get("/chat/").status_code == 200
    assert client.post("/sign-out/").status_code == 302
    assert client.get("/chat/").status_code == 302


@pytest.mark.parametrize("path", ["/sign-in/", "/chat/", "/kb/"])
def test_it_allows_no_foreign_content_and_no_caching(path: str) -> None:
    client = Client()
    if path != "/sign-in/":
        client.force_login(UserFactory())
    response = client.get(path)
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
    page = response.content.decode()
    assert "onclick=" not in page
    assert "style=" not in page
    scripts = re.findall(r"<script([^>]*)>", page)
    assert all(" src=" in attributes or "application/json" in attributes for attributes in scripts)


@pytest.mark.parametrize(("language", "title"), [("zh-hans", "这个地址没有内容"), ("en", "There is nothing at this")])
def test_it_has_a_page_for_what_does_not_exist(language: str, title: str) -> None:
    response = Client(headers={"accept-language": language}).get("/no/such/page/")
    assert response.status_code == 404
    assert title in response.content.decode()


def test_it_switches_the_language() -> None:
    client = Client(headers={"accept-language": "zh-CN"})
    assert "登录" in client.get("/sign-in/").content.decode()
    response = client.post("/i18n/setlang/", {"language": "en", "next": "/sign-in/"})
    assert response["Location"] == "/sign-in/"
    page = client.get("/sign-in/").content.decode()
    assert "Sign in" in page
    assert '<html lang="en"' in page


def test_it_gives_scripts_their_texts_in_the_readers_language() -> None:
    body = Client(headers={"accept-language": "zh-CN"}).get("/script-texts.js")
    assert body["Content-Type"].startswith("text/javascript")
    assert "\\u68c0\\u7d22" in body.content.decode()


def test_it_remembers_the_theme_and_trusts_nothing_else_in_its_cookie() -> None:
    client = Client()
    client.cookies["docmind_theme"] = "dark"
    assert 'data-theme="dark"' in client.get("/sign-in/").content.decode()
    client.cookies["docmind_theme"] = '"><b>'
    assert "<b>" not in client.get("/sign-in/").content.decode()
