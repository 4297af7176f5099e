"""The worker's cluster: which deaths it gets over, and its sign of life."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django_q.cluster import Sentinel

from docmind.cluster import SUDDEN_DEATH_STATUS, WatchedSentinel
from docmind.heartbeat import age_s, worker_heartbeat


def sentinel(tmp_path: Path) -> Any:
    guard = object.__new__(WatchedSentinel)  # its constructor would start a cluster
    guard.pool, guard.monitor = [], None
    guard._heartbeat, guard._beat_at = worker_heartbeat(tmp_path), -1000.0
    return guard


def process(timer: float) -> Any:
    return SimpleNamespace(timer=SimpleNamespace(value=timer), pid=1, exitcode=-9)


@pytest.mark.parametrize("timer", [-1, 250.5], ids=["idle", "busy"])
def test_it_ends_the_cluster_when_a_worker_dies_suddenly(tmp_path: Path, timer: float) -> None:
    guard, worker = sentinel(tmp_path), process(timer)
    guard.pool.append(worker)
    with pytest.raises(SystemExit) as end:
        guard.reincarnate(worker)
    assert end.value.code == SUDDEN_DEATH_STATUS


def test_it_ends_the_cluster_when_another_process_dies(tmp_path: Path) -> None:
    guard = sentinel(tmp_path)
    guard.monitor = SimpleNamespace(pid=1, exitcode=-9)
    with pytest.raises(SystemExit):
        guard.reincarnate(guard.monitor)


@pytest.mark.parametrize("timer", [0, -2], ids=["timed out", "recycled"])
def test_it_replaces_a_worker_that_left_in_order(tmp_path: Path, timer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[Any] = []
    monkeypatch.setattr(Sentinel, "reincarnate", lambda _self, dead: replaced.append(dead))
    guard, worker = sentinel(tmp_path), process(timer)
    guard.pool.append(worker)
    guard.reincarnate(worker)
    assert replaced == [worker]


def test_it_gives_a_sign_of_life_in_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sentinel, "status", lambda _self: "idle")
    file = worker_heartbeat(tmp_path)
    assert age_s(file) is None
    sentinel(tmp_path).status()
    age = age_s(file)
    assert age is not None
    assert age < 60
