"""Health: `live` says that the process answers, `ready` which part is up and what stands in for those that are not.

Both are open to everybody and tell neither secrets nor addresses. Each part is asked in a thread of its own pool, for
two seconds at most; a part that has not answered yet is not asked a second time.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Final, Literal

from django.conf import settings
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import close_old_connections, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_q.brokers import get_broker
from django_q.status import Stat

from apps.aiconfig.providers.registry import current_providers
from docmind.heartbeat import age_s, worker_heartbeat
from docmind.telemetry import get_logger
from docmind.vectors import get_vector_store

logger = get_logger(__name__)

PartStatus = Literal["up", "degraded", "down", "off"]
CHECK_TIMEOUT_S: Final = 2.0
SILENT_WORKER_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`off` is by configuration and not a fault; the detail says what stands in."""

    status: PartStatus
    detail: str


def _database() -> Part:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
        return Part(status="up", detail=connection.vendor)
    finally:
        close_old_connections()


def _vectors() -> Part:
    get_vector_store().ping()
    return Part(status="up", detail="Milvus" if settings.MILVUS_URI else "Milvus Lite")


def _worker() -> Part:
    """Clusters report to Redis where there is one; without, web server and worker share a data folder."""
    if settings.REDIS_URL:
        clusters = len(Stat.get_all())
        return Part(status="up" if clusters else "down", detail=f"{clusters} running")
    age = age_s(worker_heartbeat(settings.DATA_DIR))
    if age is None or age > SILENT_WORKER_S:
        return Part(status="down", detail="no sign of life; uploads wait until a worker runs")
    return Part(status="up", detail="1 running")


def _queue() -> Part:
    waiting = get_broker().queue_size()
    return Part(status="up", detail=f"{'Redis' if settings.REDIS_URL else 'database'}, {waiting} waiting")


def _cache() -> Part:
    if not settings.REDIS_URL:
        return Part(status="up", detail="in process")
    token = secrets.token_hex(8)
    cache.set("health", token, 10)  # a cache that fails is silent, so the way back is what counts
    if cache.get("health") is None:
        return Part(status="degraded", detail="Redis does not answer; nothing is cached")
    return Part(status="up", detail="Redis")


def _storage() -> Part:
    if settings.S3_BUCKET:
        default_storage.exists("health")
        return Part(status="up", detail="S3")
    name = default_storage.save(f"health/{secrets.token_hex(8)}", ContentFile(b"ok"))
    default_storage.delete(name)
    return Part(status="up", detail="files")


def _chat_model() -> Part:
    if settings.CHAT_PROVIDER == "none":
        return Part(status="off", detail="no model is configured; answers are the best-matching sentences")
    return Part(status="up", detail=f"{settings.CHAT_PROVIDER} is configured")


def _embedding() -> Part:
    if settings.EMBEDDING_PROVIDER == "none":
        return Part(status="off", detail="search is by keyword alone")
    if current_providers().embedder is None:
        return Part(status="degraded", detail="the local model cannot be loaded; search is by keyword alone")
    return Part(status="up", detail=settings.EMBEDDING_PROVIDER)


CHECKS: Final[dict[str, Callable[[], Part]]] = {
    "database": _database,
    "vectors": _vectors,
    "worker": _worker,
    "queue": _queue,
    "cache": _cache,
    "storage": _storage,
    "chat_model": _chat_model,
    "embedding": _embedding,
}
CONSEQUENCES: Final = {
    "database": "no question can be answered",
    "vectors": "search is by keyword alone",
    "worker": "uploads wait",
    "queue": "uploads wait",
    "cache": "nothing is cached",
    "storage": "uploads fail and original files cannot be opened",
    "chat_model": "answers are the best-matching sentences",
    "embedding": "search is by keyword alone",
}

_pool: Final = ThreadPoolExecutor(len(CHECKS), thread_name_prefix="docmind-health")
_asked: Final[dict[str, Future[Part]]] = {}
_failing: Final[set[str]] = set()
"""Parts whose failure has been logged; a monitor asks every few seconds."""


async def _ask(name: str) -> Part:
    pending = _asked.get(name)
    if pending is None or pending.done():
        pending = _asked[name] = _pool.submit(CHECKS[name])
    try:
        part = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(pending)), CHECK_TIMEOUT_S)
    except TimeoutError:
        return Part(status="down", detail=f"no answer within {CHECK_TIMEOUT_S:.0f} s; {CONSEQUENCES[name]}")
    except Exception as error:  # the boundary of a check: whatever fails, the part is down
        if name not in _failing:
            _failing.add(name)
            logger.warning("health_check_failed", part=name, error=type(error).__name__, exc_info=True)
        return Part(status="down", detail=CONSEQUENCES[name])
    _failing.discard(name)
    return part


@never_cache
@require_safe
async def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "live"})


@never_cache
@require_safe
async def ready(request: HttpRequest) -> JsonResponse:
    """200 while questions can be answered, degraded or not; 503 without a database."""
    parts = dict(zip(CHECKS, await asyncio.gather(*map(_ask, CHECKS)), strict=True))
    if parts["database"].status == "down":
        status = "unavailable"
    elif any(part.status in ("degraded", "down") for part in parts.values()):
        status = "degraded"
    else:
        status = "ready"
    body = {"status": status, "parts": {name: asdict(part) for name, part in parts.items()}}
    return JsonResponse(body, status=503 if status == "unavailable" else 200)
