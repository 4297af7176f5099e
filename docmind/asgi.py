"""The ASGI entry point: Django, static files beside it, and the lifespan protocol that Django leaves to others."""

from __future__ import annotations

import os
from typing import Any, Final, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docmind.settings")
django_application: Final = get_asgi_application()

from docmind.lifespan import Receive, Send, live  # noqa: E402 (models can be imported only now)
from docmind.static_files import PREFIX, build_static_application  # noqa: E402

static_application: Final = cast(Any, build_static_application())


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await live(receive, send)
    elif scope["type"] == "http" and scope["path"].startswith(f"{PREFIX}/"):
        await static_application(scope, receive, send)
    else:
        await django_application(scope, receive, send)
