"""A running site for browser tests: uvicorn in a thread on a free port, no vector server, the system's Chromium."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django import Settings

from apps.aiconfig.providers.extractive import ExtractiveChat
from apps.aiconfig.providers.registry import Providers, override_providers
from apps.aiconfig.providers.types import ChatModel
from apps.aiconfig.services import forget_config
from apps.kb import fulltext, tasks
from apps.kb.models import Document
from apps.rbac.models import User
from tests.factories import PASSWORD
from tests.servers import free_ports

START_TIMEOUT_S = 20.0
WAIT_MS = 30_000


@pytest.fixture(autouse=True)
def _fresh(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Own files, and no counters of throttles or configuration from other tests."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }
    cache.clear()
    forget_config()
    yield
    forget_config()


@dataclass(kw_only=True)
class Site:
    """A running site. `use` changes the chat model of the runs that begin from then on."""

    address: str
    worker: ThreadPoolExecutor

    def use(self, chat: ChatModel) -> None:
        _providers.chat = chat

    def ingest_all(self) -> None:
        """What the worker would do, in a thread, because the browser's driver holds this one's event loop."""
        waiting = list(Document.objects.filter(status=Document.Status.PENDING).values_list("pk", flat=True))
        for pk in waiting:
            self.worker.submit(tasks.ingest, pk).result()


class _SwitchedChat:
    """The chat model of the moment."""

    def __init__(self) -> None:
        self.chat: ChatModel = ExtractiveChat()


_providers = _SwitchedChat()


@pytest.fixture
def site(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    _providers.chat = ExtractiveChat()
    monkeypatch.setattr("apps.chat.deps.current_providers", _current)
    monkeypatch.setattr("docmind.lifespan._warm_up", _nothing_to_warm)
    (port,) = free_ports(1)
    from docmind.asgi import application

    server = uvicorn.Server(
        uvicorn.Config(application, port=port, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
    )
    with override_providers(_current()), ThreadPoolExecutor(1) as worker:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        ends_at = time.monotonic() + START_TIMEOUT_S
        while not server.started and thread.is_alive() and time.monotonic() < ends_at:
            time.sleep(0.02)
        assert server.started, "the web server did not start"
        yield Site(address=f"http://127.0.0.1:{port}", worker=worker)
        server.should_exit = True
        thread.join(timeout=START_TIMEOUT_S)
        assert not thread.is_alive(), "the web server did not end"
    fulltext.clear()


async def _nothing_to_warm() -> None:
    """There is neither an embedding model nor a vector server."""


def _current() -> Providers:
    return Providers(chat=_providers.chat, embedder=None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("DOCMIND_TEST_SERVICES") == "1":
            pytest.fail("browser tests need Chromium (Debian: apt-get install chromium)")
        pytest.skip("needs Chromium")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as driver:
        # The driver runs an event loop in the tests' thread, and the tests use the ORM beside it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=WAIT_MS)
        chromium = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass(kw_only=True)
class Visitor:
    """A signed-in browser page that remembers what went wrong in it."""

    page: Page
    problems: list[str]
    site: Site

    def open(self, path: str) -> None:
        self.page.goto(self.site.address + path)

    def ask(self, question: str) -> None:
        expect(self.page.locator("[data-send]")).to_be_enabled()  # the page's script is there
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")


def visit(
    browser: Browser,
    site: Site,
    user: User,
    *,
    language: str = "zh-CN",
    width: int = 1200,
    scheme: str = "light",
    path: str = "/chat/",
) -> Visitor:
    context = browser.new_context(
        base_url=site.address,
        locale=language,
        viewport={"width": width, "height": 820},
        color_scheme="dark" if scheme == "dark" else "light",
        is_mobile=width < 600,
        has_touch=width < 600,
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.goto(f"/sign-in/?next={path}")
    page.fill("[name=username]", user.username)
    page.fill("[name=password]", PASSWORD)
    page.click("form.form button[type=submit]")
    page.wait_for_url(f"**{path}")
    return Visitor(page=page, problems=problems, site=site)
