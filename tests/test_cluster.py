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


def process(exitcode: int | None) -> Any:
    return SimpleNamespace(pid=1, exitcode=exitcode)


def test_it_ends_the_cluster_when_a_process_was_killed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        sentinel(tmp_path).reincarnate(process(-9))
    assert end.value.code == SUDDEN_DEATH_STATUS


@pytest.mark.parametrize("exitcode", [0, 1, None], ids=["left", "failed", "timed out and still there"])
def test_it_replaces_a_process_that_was_not_killed(
    tmp_path: Path, exitcode: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: list[Any] = []
    monkeypatch.setattr(Sentinel, "reincarnate", lambda _self, dead: replaced.append(dead))
    dead = process(exitcode)
    sentinel(tmp_path).reincarnate(dead)
    assert replaced == [dead]


class LateBroker:
    """Answers from the third time on."""

    asked = 0

    def ping(self) -> bool:
        self.asked += 1
        if self.asked < 3:
            raise ConnectionError("no broker")
        return True


def test_it_waits_for_a_broker_that_is_down_and_lives_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = sentinel(tmp_path)
    guard.broker, guard.stop_event = LateBroker(), SimpleNamespace(wait=lambda _seconds: False)
    started: list[int] = []
    monkeypatch.setattr(Sentinel, "start", lambda _self: started.append(guard.broker.asked))
    guard.start()
    assert started == [3]
    assert age_s(worker_heartbeat(tmp_path)) is not None


def test_it_ends_while_it_waits_for_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = sentinel(tmp_path)
    guard.broker, guard.stop_event = LateBroker(), SimpleNamespace(wait=lambda _seconds: True)
    monkeypatch.setattr(Sentinel, "start", lambda _self: pytest.fail("it must not start"))
    guard.start()
    assert guard.broker.asked == 1


def test_it_gives_a_sign_of_life_in_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sentinel, "status", lambda _self: "idle")
    file = worker_heartbeat(tmp_path)
    assert age_s(file) is None
    sentinel(tmp_path).status()
    age = age_s(file)
    assert age is not None
    assert age < 60
