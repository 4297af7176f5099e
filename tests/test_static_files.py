"""Static files are served beside Django, from the project and from its apps."""

from __future__ import annotations

from typing import Any, cast

import httpx
import pytest

from docmind.asgi import application


async def get(path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=cast(Any, application))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path, headers=headers)


@pytest.mark.parametrize(
    ("path", "content_type"),
    [("/static/css/docmind.css", "text/css"), ("/static/admin/css/base.css", "text/css")],
)
async def test_it_serves_files_of_the_project_and_of_apps(path: str, content_type: str) -> None:
    response = await get(path)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(content_type)
    assert response.headers["cache-control"] == "no-cache"
    again = await get(path, **{"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["/static/none.css", "/static/../manage.py", "/static/%2e%2e/docmind/settings.py"])
async def test_it_serves_nothing_else(path: str) -> None:
    assert (await get(path)).status_code == 404
