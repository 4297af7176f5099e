"""The clients that a run works with, from this process's providers."""

from __future__ import annotations

from functools import partial

from django.utils.module_loading import import_string

from apps.aiconfig.providers.registry import current_providers
from apps.chat.pipeline.types import PipelineDeps


def current_deps() -> PipelineDeps:
    providers = current_providers()
    return PipelineDeps(
        chat=providers.chat,
        search=partial(
            import_string("apps.kb.retrieval.search.search"),
            embedder=providers.embedder,
            vectors=import_string("docmind.vectors.get_vector_store")(),
        ),
    )
