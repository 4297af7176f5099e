"""The health addresses: what they answer to whom, and that no part can hold them up or speak out of turn."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.test import AsyncClient
from pytest_django import Settings as SettingsFixture

from docmind import health
from docmind.health import Part
from docmind.heartbeat import beat, worker_heartbeat


def up() -> Part:
    return Part(status="up", detail="fine")


@pytest.fixture(autouse=True)
def _all_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECKS", dict.fromkeys(health.CHECKS, up))
    monkeypatch.setattr(health, "_asked", {})


async def test_it_says_that_the_process_lives_without_asking_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECKS", {})
    response = await AsyncClient().get("/api/health/live/")
    assert response.status_code == 200
    assert response.json() == {"status": "live"}


async def test_it_is_ready_when_all_parts_are_up() -> None:
    response = await AsyncClient().get("/api/health/ready/")
    assert response.status_code == 200
    assert response.json()["status"] == "ready"
    assert set(response.json()["parts"]) == {
        "database",
        "vectors",
        "worker",
        "queue",
        "cache",
        "storage",
        "chat_model",
        "embedding",
    }
    assert "no-store" in response["Cache-Control"]


async def test_it_is_degraded_but_answers_when_a_part_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(health.CHECKS, "vectors", lambda: _fail(ConnectionError("milvus.internal:19530")))
    response = await AsyncClient().get("/api/health/ready/")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["parts"]["vectors"] == {"status": "down", "detail": "search is by keyword alone"}


async def test_it_is_unavailable_without_a_database_and_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(health.CHECKS, "database", lambda: _fail(RuntimeError("mysql://root:s3cret@10.0.0.9/docmind")))
    response = await AsyncClient().get("/api/health/ready/")
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert b"s3cret" not in response.content
    assert b"10.0.0.9" not in response.content


async def test_it_counts_what_is_off_by_configuration_as_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(health.CHECKS, "chat_model", lambda: Part(status="off", detail="no model"))
    response = await AsyncClient().get("/api/health/ready/")
    assert response.json()["status"] == "ready"


async def test_it_does_not_wait_for_a_part_that_hangs_and_asks_it_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, free = [], threading.Event()

    def hang() -> Part:
        asked.append(1)
        free.wait(30)
        return up()

    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.01)
    monkeypatch.setitem(health.CHECKS, "queue", hang)
    try:
        for _request in range(2):
            response = await AsyncClient().get("/api/health/ready/")
            assert response.json()["parts"]["queue"]["status"] == "down"
        assert asked == [1]
    finally:
        free.set()


async def test_it_takes_only_reading_methods() -> None:
    assert (await AsyncClient().post("/api/health/ready/")).status_code == 405


def test_it_sees_a_worker_by_its_heartbeat(settings: SettingsFixture, tmp_path: Path) -> None:
    settings.REDIS_URL, settings.DATA_DIR = "", tmp_path
    assert health._worker().status == "down"
    beat(worker_heartbeat(tmp_path))
    assert health._worker().status == "up"


def test_it_says_what_stands_in_for_a_model(settings: SettingsFixture) -> None:
    settings.CHAT_PROVIDER, settings.EMBEDDING_PROVIDER = "none", "none"
    assert health._chat_model().status == "off"
    assert "keyword" in health._embedding().detail


@pytest.mark.django_db(transaction=True)  # the checks close their connections
def test_it_asks_the_database_and_the_queue() -> None:
    assert health._database().status == "up"
    assert health._queue().status == "up"


def test_it_tries_the_file_store_by_writing_and_leaves_nothing(settings: SettingsFixture, tmp_path: Path) -> None:
    settings.S3_BUCKET = ""
    settings.STORAGES = settings.STORAGES | {
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path)},
        }
    }
    assert health._storage().status == "up"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def _fail(error: Exception) -> Part:
    raise error
