"""The ASGI entry point: Django, and the lifespan protocol that Django leaves to others."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docmind.settings")
django_application: Final = get_asgi_application()

from docmind.lifespan import live  # noqa: E402 (models can be imported only now)


async def application(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
    else:
        await django_application(scope, receive, send)
