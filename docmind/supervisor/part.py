"""One part: its process group, its output, and when it may be started again after a death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from docmind.supervisor.surroundings import PROJECT

QUICK_S = 10.0
"""A part that dies sooner, or before it was healthy, has died quickly."""
MAX_QUICK_DEATHS = 6
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
GROUP_END_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    name: str
    command: tuple[str, ...]
    is_healthy: Callable[[], bool]
    stop_signal: signal.Signals = signal.SIGTERM
    pulse: Path | None = None
    """A file that the part touches while it works; where it stays untouched for too long, the part hangs."""


@dataclass(slots=True)
class Backoff:
    """How long to wait before the next start. None: it has died quickly too often."""

    quick_deaths: int = 0

    def after_death(self, *, lived_s: float, was_healthy: bool) -> float | None:
        if was_healthy and lived_s >= QUICK_S:
            self.quick_deaths = 0
            return FIRST_DELAY_S
        self.quick_deaths += 1
        if self.quick_deaths >= MAX_QUICK_DEATHS:
            return None
        return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (self.quick_deaths - 1)))


@dataclass(slots=True)
class Part:
    spec: PartSpec
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    """Monotonic seconds, as all times here."""
    start_again_at: float | None = None
    is_healthy: bool = False
    pulse_seen: float = 0.0
    pulse_seen_at: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def output(self) -> IO[bytes] | None:
        return self.process.stdout if self.process else None

    def start(self) -> int:
        """Start the process in a session of its own. Returns the file descriptor of its output."""
        self.start_again_at, self.is_healthy = None, False
        self.started_at = self.pulse_seen_at = time.monotonic()
        self._forget_pulse()
        self.process = spawn(self.spec.command, stderr=subprocess.STDOUT)
        assert self.process.stdout is not None  # noqa: S101 (for the type checker: a pipe was asked for)
        return self.process.stdout.fileno()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def hung_for_s(self) -> float:
        """Seconds since the pulse last changed. Counted here, so that a machine's sleep is not taken for a death."""
        if self.spec.pulse is None or not self.is_healthy:
            return 0.0
        try:
            pulse = self.spec.pulse.stat().st_mtime
        except OSError:
            pulse = 0.0
        if pulse != self.pulse_seen:
            self.pulse_seen, self.pulse_seen_at = pulse, time.monotonic()
        return time.monotonic() - self.pulse_seen_at

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.spec.stop_signal)

    def kill_group(self) -> None:
        """Kill whatever is left of the process group and wait for its end."""
        if self.process is not None:
            kill_group(self.process)
        self._forget_pulse()

    def _forget_pulse(self) -> None:
        """It was the predecessor's."""
        if self.spec.pulse is not None:
            self.spec.pulse.unlink(missing_ok=True)


def spawn(command: tuple[str, ...], *, stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Start a command, tied to this process's life, in a session of its own, with its output in a pipe."""
    return subprocess.Popen(  # noqa: S603 (the supervisor's own commands)
        [sys.executable, "-S", "-m", "docmind.supervisor.tether", str(os.getpid()), *command],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "docmind.settings", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group that `process` leads. Orphans in it have become children of ours and are reaped."""
    deadline = time.monotonic() + GROUP_END_S
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        except PermissionError:  # macOS, where only zombies are left
            return
        process.poll()
        _reap_orphans(process.pid)
        time.sleep(0.02)


def _reap_orphans(group: int) -> None:
    try:
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return
