"""`python -m docmind.describe`: the settings that concern the supervisor, as JSON, or one line that says what is wrong.

Nothing of Django is set up for it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from docmind.supervisor.surroundings import Surroundings


def main() -> int:
    try:
        settings: Any = import_module("docmind.settings")
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = Surroundings(
        data_dir=str(settings.DATA_DIR),
        host=settings.HOST,
        port=settings.PORT,
        vector_port=None if settings.MILVUS_URI else settings.MILVUS_LITE_PORT,
    )
    sys.stdout.write(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
