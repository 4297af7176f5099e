"""Where and with what DocMind runs: read from the settings in another process, so that the supervisor stays small."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


class CannotStartError(Exception):
    """A reason not to start that its reader can do something about, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    data_dir: str
    host: str
    port: int
    vector_port: int | None
    """Of the Milvus Lite server; None where another Milvus is configured."""

    @property
    def local_host(self) -> str:
        """Under which address this machine itself reaches the web server."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def address(self) -> str:
        host = f"[{self.local_host}]" if ":" in self.local_host else self.local_host
        return f"http://{host}:{self.port}"


def read_surroundings() -> Surroundings:
    """Raises CannotStartError with the settings' own words where a setting is wrong."""
    answer = subprocess.run(
        [sys.executable, "-m", "docmind.describe"],
        cwd=PROJECT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if answer.returncode != 0:
        raise CannotStartError(answer.stderr.strip() or "The settings cannot be read.")
    return Surroundings(**json.loads(answer.stdout))
