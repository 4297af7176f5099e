"""The ASGI entry point: Django, and the lifespan protocol that Django leaves to others."""

from __future__ import annotations

import os
from typing import Any, Final

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docmind.settings")
django_application: Final = get_asgi_application()

from docmind.lifespan import Receive, Send, live  # noqa: E402 (models can be imported only now)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
    else:
        await django_application(scope, receive, send)
