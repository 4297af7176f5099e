"""What the import contract cannot say: pipelines do not know HTTP, leaf packages do not know the ORM."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def imported_by(folder: str) -> Iterator[tuple[Path, str]]:
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((file, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield file, node.module
                yield from ((file, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("apps/kb/ingestion", "django.http"),
        ("apps/kb/retrieval", "django.http"),
        ("apps/chat/pipeline", "django.http"),
        ("docmind/text", "django.db"),
        ("docmind/vectors", "django.db"),
        ("docmind/supervisor", "django"),
    ],
)
def test_a_package_keeps_away_from(folder: str, forbidden: str) -> None:
    modules = list(imported_by(folder))
    assert modules, f"{folder} has no imports: was it moved?"
    assert [(str(file), name) for file, name in modules if f"{name}.".startswith(f"{forbidden}.")] == []
