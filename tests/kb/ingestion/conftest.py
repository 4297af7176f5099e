from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from apps.kb.ingestion.pipeline import Tools
from apps.kb.models import KnowledgeBase
from tests.factories import KnowledgeBaseFactory
from tests.fakes import HashingEmbedder
from tests.kb.ingestion.support import MemoryVectors, make_tools


@pytest.fixture(autouse=True)
def _own_files(settings: Settings, tmp_path: Path) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }


@pytest.fixture
def knowledge_base(transactional_db: None) -> KnowledgeBase:
    created: KnowledgeBase = KnowledgeBaseFactory.create()
    return created


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
def vectors() -> MemoryVectors:
    return MemoryVectors()


@pytest.fixture
def tools(vectors: MemoryVectors, embedder: HashingEmbedder) -> Tools:
    return make_tools(vectors, embedder)
