"""What must hold before anything is started, each with one clear line when it does not."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import TextIO

from docmind.supervisor.surroundings import CannotStartError

LOCK_NAME = "supervisor.lock"
PORT_PATIENCE_S = 3.0
"""A predecessor that was killed a moment ago may still be giving its port back."""


def lock_data_folder(data_dir: Path, address: str) -> TextIO:
    """Make the folder, private to its owner, and take its lock; the lock lasts as long as the returned file is open."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data_dir.stat().st_uid == os.geteuid():
            data_dir.chmod(0o700)
        lock = (data_dir / LOCK_NAME).open("a+", encoding="utf-8")
    except OSError as error:
        raise CannotStartError(
            f"The data folder {data_dir} cannot be written ({error.strerror}). Set DOCMIND_DATA_DIR to one that can."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise CannotStartError(f"DocMind is running on the data folder {data_dir} already: {holder}.") from None
    lock.truncate(0)
    lock.write(f"{address}, process {os.getpid()}\n")
    lock.flush()
    return lock


def check_port(host: str, port: int, variable: str, patience_s: float = PORT_PATIENCE_S) -> None:
    """Raises CannotStartError where the port is taken or the address is not this machine's."""
    deadline = time.monotonic() + patience_s
    while error := _bind_error(host, port):
        if time.monotonic() > deadline:
            raise CannotStartError(f"Port {port} on {host} cannot be used ({error}). Set {variable} to a free one.")
        time.sleep(0.2)


def _bind_error(host: str, port: int) -> str:
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return ""
