"""Fixtures for all suites. With DOCMIND_TEST_SERVICES=1 they stand on real services instead of embedded defaults."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.core.cache import cache
from pytest_django import Settings

from apps.aiconfig.services import forget_config
from apps.kb import fulltext
from tests.servers import milvus_lite_server, milvus_standalone_server

pytest_plugins = ("tests.no_skips",)

ON_SERVICES = os.environ.get("DOCMIND_TEST_SERVICES") == "1"


@pytest.fixture(scope="session")
def milvus_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running vector server: Milvus Lite, or Milvus standalone when on services."""
    server = milvus_standalone_server if ON_SERVICES else milvus_lite_server
    with server(tmp_path_factory.mktemp("milvus")) as uri:
        yield uri


@pytest.fixture(autouse=True)
def _fresh_process(settings: Settings) -> Iterator[None]:
    """What a process remembers is forgotten between tests; passwords are hashed cheaply (bcrypt has its own test)."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    forget_config()
    yield
    forget_config()


@pytest.fixture(autouse=True)
def _empty_search_table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Transactional tests flush Django's own tables only; kb_chunk_search is none of them."""
    marker = request.node.get_closest_marker("django_db")
    if marker is None or not marker.kwargs.get("transaction"):
        yield
        return
    request.getfixturevalue("transactional_db")
    yield
    fulltext.clear()
