"""Whether a part answers. Each probe takes two seconds at most and raises nothing."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

from docmind.heartbeat import age_s

PROBE_TIMEOUT_S = 2.0
FRESH_S = 10.0


def accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=PROBE_TIMEOUT_S):
            return True
    except OSError:
        return False


def answers_http(host: str, port: int, path: str) -> bool:
    """Any answer but a server's error counts: hosts other than ours may be refused, and plain HTTP redirected."""
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def has_pulse(file: Path) -> bool:
    age = age_s(file)
    return age is not None and age < FRESH_S
