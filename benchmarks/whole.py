"""A whole DocMind for a benchmark: started as `make up` starts it, on a folder and ports of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PASSWORD = "benchmark password"
START_TIMEOUT_S = 300.0


class Whole:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        """`environment` comes on top of the caller's, so that a benchmark can be run on MariaDB, Redis and Milvus."""
        port, vector_port = _free_ports(2)
        self.address = f"http://127.0.0.1:{port}"
        self._log = folder / "output.txt"
        self._environment = {
            **os.environ,
            "DOCMIND_DATA_DIR": str(folder / "data"),
            "DOCMIND_PORT": str(port),
            "DOCMIND_MILVUS_LITE_PORT": str(vector_port),
            "DOCMIND_ADMIN_PASSWORD": PASSWORD,
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Returns the seconds until all parts were healthy."""
        began = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "docmind.supervisor", "--end-with-parent"],
                cwd=PROJECT,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        while "DocMind is ready" not in self.output:
            if self._process.poll() is not None or time.monotonic() - began > START_TIMEOUT_S:
                raise RuntimeError(f"DocMind did not start:\n{self.output}")
            time.sleep(0.02)
        return time.monotonic() - began

    def stop(self) -> float:
        """Returns the seconds until all had ended."""
        began = time.monotonic()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()
        return time.monotonic() - began

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def memory(self) -> list[tuple[str, float]]:
        """Name and PSS in MB of every process (Linux)."""
        if self._process is None:
            return []
        return [(_name(pid), _pss_mb(pid)) for pid in _tree(self._process.pid)]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _number in range(count)]
        return [listener.getsockname()[1] for listener in sockets]


def _tree(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [pid, *(found for child in children for found in _tree(child))]


def _name(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    known = ("docmind.supervisor", "milvus_lite", "uvicorn", "worker")
    return next((name for name in known if name in words), words[0])


def _pss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
