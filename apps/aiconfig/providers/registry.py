"""The providers of this process, built once from settings; a fork builds its own.

The rest of DocMind asks here and never imports a vendor's module. Vendors' modules are loaded when they are chosen:
each brings an SDK of 30 to 60 MB.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings

from apps.aiconfig.providers.extractive import ExtractiveChat
from apps.aiconfig.providers.query_cache import QueryCachingEmbedder
from apps.aiconfig.providers.types import ChatModel, Embedder
from docmind.telemetry import get_logger

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """`embedder` is None where there is none: search is then by keyword alone."""

    chat: ChatModel
    embedder: Embedder | None


class _Held:
    lock = threading.Lock()
    providers: Providers | None = None
    pid: int = 0
    closers: tuple[Callable[[], Awaitable[None]], ...] = ()
    override: Providers | None = None


def current_providers() -> Providers:
    """The providers that settings choose.

    The first call in a process builds them, which takes up to two seconds: make it at start, not inside a request.
    """
    if _Held.override is not None:
        return _Held.override
    if _Held.providers is not None and _Held.pid == os.getpid():
        return _Held.providers
    with _Held.lock:
        if _Held.providers is None or _Held.pid != os.getpid():
            chat, chat_closers = _build_chat()
            embedder, embedder_closers = _build_embedder()
            _Held.providers, _Held.pid = Providers(chat=chat, embedder=embedder), os.getpid()
            _Held.closers = chat_closers + embedder_closers
        return _Held.providers


@contextmanager
def override_providers(providers: Providers) -> Iterator[Providers]:
    """Put others in their place, in every thread, for tests."""
    previous, _Held.override = _Held.override, providers
    try:
        yield providers
    finally:
        _Held.override = previous


async def close_providers() -> None:
    """Close this process's connections to vendors, at shutdown, in the event loop that used them."""
    with _Held.lock:
        closers = _Held.closers if _Held.pid == os.getpid() else ()
        _Held.providers, _Held.closers = None, ()
    for close in closers:
        await close()


_Closers = tuple[Callable[[], Awaitable[None]], ...]


def _build_chat() -> tuple[ChatModel, _Closers]:
    chat: Any
    match settings.CHAT_PROVIDER:
        case "dashscope":
            vendor = import_module("apps.aiconfig.providers.dashscope")
            chat = vendor.DashScopeChat(api_key=settings.DASHSCOPE_API_KEY, base_url=settings.DASHSCOPE_HTTP_BASE_URL)
        case "openai":
            vendor = import_module("apps.aiconfig.providers.openai_compatible")
            chat = vendor.OpenAICompatibleChat(api_key=settings.OPENAI_API_KEY, base_url=settings.OPENAI_BASE_URL)
        case _:
            return ExtractiveChat(), ()
    return chat, (chat.aclose,)


def _build_embedder() -> tuple[Embedder | None, _Closers]:
    if settings.EMBEDDING_PROVIDER == "none":
        return None, ()
    try:
        local: Any = import_module("apps.aiconfig.providers.local_embedding").LocalEmbedder()
    except (ImportError, OSError, RuntimeError) as error:
        logger.warning("local_embedding_unavailable", reason=str(error), search="keyword only")
        return None, ()
    return QueryCachingEmbedder(local), (local.aclose,)
