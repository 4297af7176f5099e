"""The clients that a run works with, from this process's providers."""

from __future__ import annotations

from functools import partial

from apps.aiconfig.providers.registry import current_providers
from apps.chat.pipeline.types import PipelineDeps
from apps.kb.retrieval.search import search
from docmind.vectors import get_vector_store


def current_deps() -> PipelineDeps:
    providers = current_providers()
    return PipelineDeps(
        chat=providers.chat,
        search=partial(search, embedder=providers.embedder, vectors=get_vector_store()),
    )
