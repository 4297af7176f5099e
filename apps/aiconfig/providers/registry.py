"""The providers of this process, built once from settings; a fork builds its own.

The rest of DocMind asks here and never imports a vendor's module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings

from apps.aiconfig.providers.extractive import ExtractiveChat
from apps.aiconfig.providers.types import ChatModel, Embedder
from docmind.telemetry import get_logger

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """`embedder` is None where there is none: search is then by keyword alone."""

    chat: ChatModel
    embedder: Embedder | None


class _Held:
    providers: Providers | None = None
    pid: int = 0
    override: Providers | None = None


def current_providers() -> Providers:
    """The providers that settings choose. The first call of a process builds them; that loads no model."""
    if _Held.override is not None:
        return _Held.override
    if _Held.providers is None or _Held.pid != os.getpid():
        _Held.providers, _Held.pid = _build(), os.getpid()
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
    """Close the vendors' connections, at shutdown, in the event loop that used them."""
    _Held.providers = None


def _build() -> Providers:
    return Providers(chat=ExtractiveChat(), embedder=None)
