"""Processes as /proc shows them. Zombies count as ended: who reaps them is not ours to say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE_S = 60.0
PAUSE_S = 0.05


def wait_for(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(PAUSE_S)


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found |= {int(child)} | descendants(int(child))
    except FileNotFoundError:
        pass
    return found


def alive(pids: Iterable[int]) -> set[int]:
    return {pid for pid in pids if _is_alive(pid)}


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
