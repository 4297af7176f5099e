from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.kb import fulltext


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
