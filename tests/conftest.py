"""Fixtures for all suites. With DOCMIND_TEST_SERVICES=1 they stand on real services instead of embedded defaults."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers import milvus_lite_server, milvus_standalone_server

ON_SERVICES = os.environ.get("DOCMIND_TEST_SERVICES") == "1"


@pytest.fixture(scope="session")
def milvus_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running vector server: Milvus Lite, or Milvus standalone when on services."""
    server = milvus_standalone_server if ON_SERVICES else milvus_lite_server
    with server(tmp_path_factory.mktemp("milvus")) as uri:
        yield uri
