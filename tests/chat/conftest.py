from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from django.conf import settings
from django.core.cache import cache

from apps.aiconfig.services import forget_config
from apps.chat import runs
from apps.chat.api import stream_views
from apps.chat.bus import InProcessBus, RunBus
from apps.chat.pipeline.types import PipelineDeps
from apps.chat.runs import RunManager
from apps.kb.models import KnowledgeBase
from apps.rbac.models import User
from tests.chat.support import deps_of
from tests.factories import KnowledgeBaseFactory, UserFactory


def redis_url() -> str:
    """The Redis of the tests: REDIS_URL, or the local one where services are asked for."""
    if settings.REDIS_URL:
        return str(settings.REDIS_URL)
    return "redis://127.0.0.1:6379/5" if os.environ.get("DOCMIND_TEST_SERVICES") == "1" else ""


def make_bus(kind: str) -> RunBus:
    if kind == "in-process":
        return InProcessBus()
    url = redis_url()
    if not url:
        pytest.skip("needs REDIS_URL or DOCMIND_TEST_SERVICES=1")
    from apps.chat.redis_bus import RedisBus

    return RedisBus(url)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    cache.clear()
    forget_config()
    yield
    forget_config()


@pytest.fixture
def user(db: None) -> User:
    return UserFactory()


@pytest.fixture
def outsider(db: None) -> User:
    return UserFactory()


@pytest.fixture
def kb(db: None) -> KnowledgeBase:
    return KnowledgeBaseFactory()


@pytest_asyncio.fixture
async def manager(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunManager]:
    """The process's run manager, in this test's event loop, with quick loops."""
    made = RunManager(InProcessBus(), watch_s=0.01, flush_s=0.01)
    monkeypatch.setattr(runs._Held, "manager", made)
    yield made
    await runs.shutdown_runs()


class Wiring:
    """Which clients the views give to a run."""

    def __init__(self) -> None:
        self.deps: PipelineDeps = deps_of()

    def use(self, chat: Any = None, search: Any = None) -> None:
        self.deps = deps_of(chat, search)


@pytest.fixture
def wiring(monkeypatch: pytest.MonkeyPatch) -> Wiring:
    wired = Wiring()
    monkeypatch.setattr(stream_views, "current_deps", lambda: wired.deps)
    return wired
