"""`python -m docmind.supervisor`: everything that one machine needs, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path

from docmind.heartbeat import worker_heartbeat
from docmind.supervisor import probes
from docmind.supervisor.guards import check_port, lock_data_folder
from docmind.supervisor.part import PartSpec
from docmind.supervisor.supervise import Supervisor
from docmind.supervisor.surroundings import CannotStartError, Surroundings, read_surroundings
from docmind.supervisor.tether import die_with

WEB_STOP_S = 5
LOOPBACK = "127.0.0.1"


def vector_server(found: Surroundings) -> PartSpec | None:
    """Milvus Lite, where no other Milvus is configured. It closes its files in order on SIGINT alone."""
    if found.vector_port is None:
        return None
    data = str(Path(found.data_dir) / "milvus")
    command = (sys.executable, "-m", "milvus_lite", "server", "--host", LOOPBACK, "--data-dir", data)
    return PartSpec(
        name="vectors",
        command=(*command, "--port", str(found.vector_port)),
        is_healthy=partial(probes.accepts_connections, LOOPBACK, found.vector_port),
        stop_signal=signal.SIGINT,
    )


def worker(found: Surroundings) -> PartSpec:
    pulse = worker_heartbeat(Path(found.data_dir))
    return PartSpec(
        name="worker",
        command=(sys.executable, "manage.py", "worker"),
        is_healthy=partial(probes.has_pulse, pulse),
        pulse=pulse,
    )


def web_server(found: Surroundings) -> PartSpec:
    command = (sys.executable, "-m", "uvicorn", "docmind.asgi:application", "--lifespan", "on", "--no-access-log")
    where = ("--host", found.host, "--port", str(found.port))
    return PartSpec(
        name="web",
        command=(*command, *where, "--timeout-graceful-shutdown", str(WEB_STOP_S)),
        is_healthy=partial(probes.answers_http, found.local_host, found.port, "/api/health/live/"),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docmind.supervisor", description=__doc__)
    parser.add_argument("--end-with-parent", action="store_true", help="stop when the process that started this ends")
    options = parser.parse_args()
    os.umask(0o077)
    try:
        found = read_surroundings()
        lock = lock_data_folder(Path(found.data_dir), found.address)
        check_port(found.host, found.port, "DOCMIND_PORT")
        if found.vector_port is not None:
            check_port(LOOPBACK, found.vector_port, "DOCMIND_MILVUS_LITE_PORT")
    except CannotStartError as reason:
        sys.stderr.write(f"{reason}\n")
        return 2
    with lock:
        if options.end_with_parent:
            die_with(os.getppid(), signal.SIGTERM)
        return Supervisor(found, vector_server(found), (worker(found), web_server(found))).run()


if __name__ == "__main__":
    sys.exit(main())
