"""From an empty database to the first sign-in, at the first start and at later ones."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from pytest_django import Settings as SettingsFixture

from apps.kb import services
from apps.kb.models import Document, KnowledgeBase
from apps.rbac.models import User
from apps.rbac.permissions import SUPER_ADMIN
from docmind.bootstrap import MANUAL_FOLDER, MANUAL_NAME, bootstrap

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _files_in_memory(settings: SettingsFixture) -> None:
    settings.STORAGES = settings.STORAGES | {"default": {"BACKEND": "django.core.files.storage.InMemoryStorage"}}
    settings.ADMIN_PASSWORD = ""


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    for language, text in (("en", "# Ports\n\nThe port is 8000.\n"), ("zh", "# 端口\n\n端口是 8000。\n")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "ports.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_it_makes_an_administrator_who_can_sign_in_with_the_generated_password(manual: Path) -> None:
    outcome = bootstrap(manual)
    assert outcome.created
    administrator = authenticate(username="admin", password=outcome.password)
    assert isinstance(administrator, User)
    assert SUPER_ADMIN in administrator.role_codes()


def test_it_takes_the_configured_password_and_does_not_repeat_it(settings: SettingsFixture, manual: Path) -> None:
    settings.ADMIN_PASSWORD = "correct horse"
    outcome = bootstrap(manual)
    assert outcome.created
    assert outcome.password == ""
    assert authenticate(username="admin", password="correct horse")


def test_it_leaves_an_administrator_alone(manual: Path) -> None:
    User.objects.create_superuser("boss", "battery staple")
    outcome = bootstrap(manual)
    assert (outcome.created, outcome.password) == (False, "")
    assert not User.objects.filter(username="admin").exists()


def test_it_imports_the_manual_once(manual: Path) -> None:
    assert bootstrap(manual).imported == 2
    assert bootstrap(manual).imported == 0
    documents = Document.objects.filter(knowledge_base__name=MANUAL_NAME)
    assert sorted(documents.values_list("source_name", flat=True)) == ["ports.en.md", "ports.zh.md"]
    assert KnowledgeBase.objects.get().visibility == KnowledgeBase.Visibility.PUBLIC


def test_it_replaces_a_page_that_has_changed_and_adds_a_new_one(manual: Path) -> None:
    bootstrap(manual)
    (manual / "en" / "ports.md").write_text("# Ports\n\nThe port is 9000.\n", encoding="utf-8")
    (manual / "en" / "keys.md").write_text("# Keys\n\nThere are none.\n", encoding="utf-8")
    assert bootstrap(manual).imported == 2
    assert Document.objects.count() == 3
    with services.open_original(Document.objects.get(source_path="docs/manual/en/ports.md")) as original:
        assert b"9000" in original.read()


def test_it_does_not_bring_a_deleted_manual_back(manual: Path) -> None:
    bootstrap(manual)
    KnowledgeBase.objects.all().delete()
    assert bootstrap(manual).imported == 0
    assert not KnowledgeBase.objects.exists()


def test_it_ships_a_manual_in_both_languages() -> None:
    assert {page.name for page in (MANUAL_FOLDER / "zh").glob("*.md")} == {
        page.name for page in (MANUAL_FOLDER / "en").glob("*.md")
    }


def test_it_reports_as_json_for_the_supervisor(settings: SettingsFixture, tmp_path: Path) -> None:
    output = StringIO()
    call_command("bootstrap", "--json", stdout=output)
    report = json.loads(output.getvalue())
    assert report["created"] is True
    assert authenticate(username="admin", password=report["password"])
    assert report["imported"] == len(list(MANUAL_FOLDER.glob("*/*.md")))
