"""CSS, scripts and pictures, served beside Django: no thread and no middleware for a file.

The folders are the project's own and those of the installed apps, so nothing has to be collected. Browsers keep files
but ask each time whether they have changed, so that an upgrade is seen at once.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

PREFIX: Final = "/static"


class AppStaticFiles(StaticFiles):
    """The static files of the project and of its apps; the project's come first."""

    def get_directories(self, directory: Any = None, packages: Any = None) -> list[Any]:
        folders = [*settings.STATICFILES_DIRS, *(Path(app.path) / "static" for app in apps.get_app_configs())]
        return [str(folder) for folder in folders if Path(folder).is_dir()]

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: MutableMapping[str, Any], status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def build_static_application() -> Starlette:
    """An ASGI application for everything under PREFIX. Expects that Django's apps are ready."""
    return Starlette(routes=[Mount(PREFIX, AppStaticFiles(check_dir=False))])
