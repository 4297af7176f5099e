"""Django-q2's cluster, made to end as a whole.

A process of the cluster that is killed may hold the lock of a queue that it was waiting on (an idle worker always
does); its successor would then wait for ever, and with it every task. So after a sudden death the whole cluster ends
with a non-zero status, and whoever started it starts it again. Processes that left by themselves (a recycled or timed
out worker, a pusher whose broker failed) hold no lock and are replaced. A broker that is down is waited for.
"""

from __future__ import annotations

import sys
import time
from multiprocessing import Event
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from django.db import connections
from django_q.cluster import Cluster, Sentinel, get_mp_context

from docmind.heartbeat import beat
from docmind.telemetry import get_logger

logger = get_logger(__name__)

BEAT_S = 1.0
SUDDEN_DEATH_STATUS = 70
BROKER_RETRY_S = 2.0


class WatchedSentinel(Sentinel):  # type: ignore[misc]  # django-q2 has no types
    """Guards the cluster's processes, and gives a sign of life in every round of its loop."""

    def __init__(self, heartbeat: Path, *args: Any) -> None:
        self._heartbeat = heartbeat
        self._beat_at = 0.0
        super().__init__(*args)

    def start(self) -> None:
        if self._wait_for_broker():
            super().start()

    def status(self) -> str:
        """Asked in every round, for the cluster's statistics."""
        self._beat()
        return str(super().status())

    def reincarnate(self, process: BaseProcess) -> None:
        if process.exitcode is not None and process.exitcode < 0:
            logger.error("cluster_process_killed", pid=process.pid, signal=-process.exitcode)
            sys.exit(SUDDEN_DEATH_STATUS)
        super().reincarnate(process)

    def _wait_for_broker(self) -> bool:
        """Returns False where the end was asked for meanwhile."""
        while True:
            self._beat()
            try:
                self.broker.ping()
            except Exception as error:  # noqa: BLE001 -- each broker has errors of its own
                logger.warning("broker_unreachable", error=str(error), retry_s=BROKER_RETRY_S)
            else:
                return True
            if self.stop_event.wait(BROKER_RETRY_S):
                return False

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at >= BEAT_S:
            self._beat_at = now
            beat(self._heartbeat)


class WatchedCluster(Cluster):  # type: ignore[misc]  # django-q2 has no types
    """A cluster under a WatchedSentinel."""

    def __init__(self, heartbeat: Path) -> None:
        super().__init__()
        self._heartbeat = heartbeat

    def run(self) -> int:
        """Work until SIGTERM or SIGINT (0), or until a process of the cluster died (not 0)."""
        connections.close_all()  # a fork must not share them
        self.stop_event, self.start_event = Event(), Event()
        self.sentinel = get_mp_context().Process(
            target=WatchedSentinel,
            args=(self._heartbeat, self.stop_event, self.start_event, self.cluster_id, self.broker, self.timeout),
        )
        self.sentinel.start()
        self.sentinel.join()
        return abs(int(self.sentinel.exitcode or 0))
