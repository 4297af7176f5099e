"""Ties a process to its parent: it does not outlive it, whatever killed the parent.

Linux does this in the kernel (PR_SET_PDEATHSIG, which an exec keeps and a fork forgets). Elsewhere the parent's id is
watched. Run as a module, it ties a command: `python -m docmind.supervisor.tether PARENT_PID COMMAND ...`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

IS_LINUX = sys.platform == "linux"
WATCH_S = 0.5

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class _Forks:
    parent_pid = 0


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def die_with(parent_pid: int, signum: signal.Signals = signal.SIGKILL) -> None:
    """Let this process get `signum` when its parent ends; at once, where it has ended already."""
    if IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, signum)
    else:
        threading.Thread(target=_watch, args=(parent_pid, signum), daemon=True).start()
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)


def tie_forks() -> None:
    """Tie every process that this one, or one of those, forks to the one that forked it."""
    os.register_at_fork(before=_remember_pid, after_in_child=lambda: die_with(_Forks.parent_pid))


def adopt_orphans() -> None:
    """Make grandchildren whose parent died children of this process, so that it can wait for their end."""
    if IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def run_tied(parent_pid: int, command: list[str]) -> int:
    """Become the command (Linux), or run it and kill its process group when the parent ends. Returns its status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
    if IS_LINUX:
        die_with(parent_pid)
        os.execvp(command[0], command)  # noqa: S606 (the supervisor's own commands)
    child = subprocess.Popen(command)  # noqa: S603
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda received, _frame: child.send_signal(received))
    while child.poll() is None:
        if os.getppid() != parent_pid:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        time.sleep(WATCH_S)
    return child.returncode


def _remember_pid() -> None:
    _Forks.parent_pid = os.getpid()


def _watch(parent_pid: int, signum: signal.Signals) -> None:
    while os.getppid() == parent_pid:
        time.sleep(WATCH_S)
    os.kill(os.getpid(), signum)


if __name__ == "__main__":
    sys.exit(run_tied(int(sys.argv[1]), sys.argv[2:]))
