"""A sign of life between processes of one machine: a file in the data folder that is touched once in a while."""

from __future__ import annotations

import time
from pathlib import Path


def worker_heartbeat(data_dir: Path) -> Path:
    """The file that the worker touches."""
    return data_dir / "run" / "worker.heartbeat"


def beat(file: Path) -> None:
    """Say that this process lives. Raises OSError where the folder cannot be written."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch()


def age_s(file: Path) -> float | None:
    """Seconds since the last sign of life; None where there never was one."""
    try:
        return max(0.0, time.time() - file.stat().st_mtime)
    except FileNotFoundError:
        return None
