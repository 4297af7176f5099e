"""Real vector servers for tests, on loopback and free ports: Milvus Lite, and Milvus 2.3 from its PyPI wheel."""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START_TIMEOUT_S = 90.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on at the moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _number in range(count)]
        return [listener.getsockname()[1] for listener in sockets]


@dataclass(kw_only=True)
class MilvusServer:
    """One server process on one data folder; may be killed and started again on the same port."""

    command: Sequence[str]
    port: int
    data_dir: Path
    health_port: int | None = None
    """Where `/healthz` is served; a server without it is up when its port accepts."""
    environment: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def _log(self) -> Path:
        return self.data_dir / "server.log"

    def start(self) -> None:
        """Start the process and return when it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.data_dir,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 -- async-signal-safe
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                tail = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"The Milvus server did not start:\n{tail}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            if self.health_port is None:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return True
            connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
            connection.request("GET", "/healthz")
            return connection.getresponse().read().strip() == b"OK"
        except (OSError, http.client.HTTPException):
            return False

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> MilvusServer:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()


def milvus_lite(data_dir: Path) -> MilvusServer:
    """A Milvus Lite server, not started yet."""
    (port,) = free_ports(1)
    data_dir.mkdir(parents=True, exist_ok=True)
    program = Path(sys.executable).parent / "milvus-lite"
    arguments = ["server", "--data-dir", str(data_dir / "lite"), "--host", "127.0.0.1", "--port", str(port)]
    return MilvusServer(command=[str(program), *arguments], port=port, data_dir=data_dir)


def milvus_standalone(data_dir: Path) -> MilvusServer:
    """A Milvus 2.3 standalone server (`uv sync --group services`), not started yet.

    The wheel packs its programs with LZMA; they are unpacked once a machine, into the temporary folder.
    """
    import milvus

    config = milvus.MilvusServerConfig(data_dir=str(data_dir))
    port_keys = [key for key in config.configurable_items if key.endswith("_port")]
    *ports, health_port, etcd_client_port, etcd_peer_port = free_ports(len(port_keys) + 3)
    config.update(**dict(zip(port_keys, ports, strict=True)))
    for part in ("rootCoord", "proxy", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode"):
        config.set(f"{part}.ip", "127.0.0.1")
    config.resolve()
    etcd_config = data_dir / "etcd.yaml"
    etcd_config.write_text(
        f"listen-client-urls: http://127.0.0.1:{etcd_client_port}\n"
        f"advertise-client-urls: http://127.0.0.1:{etcd_client_port}\n"
        f"listen-peer-urls: http://127.0.0.1:{etcd_peer_port}\n"
        f"initial-advertise-peer-urls: http://127.0.0.1:{etcd_peer_port}\n"
        f"initial-cluster: default=http://127.0.0.1:{etcd_peer_port}\n",
        encoding="ascii",
    )

    programs = Path(tempfile.gettempdir()) / f"milvus-{milvus.__version__}-{os.getuid()}"
    programs.mkdir(exist_ok=True)
    with (programs / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        milvus._initialize_data_files(str(programs))
    port = config.get("proxy_port")
    return MilvusServer(
        command=[str(programs / "bin" / "milvus"), "run", "standalone", f"-alias=test-{port}"],
        port=port,
        data_dir=data_dir,
        health_port=health_port,
        environment={
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(health_port),
            "ETCD_CONFIG_PATH": str(etcd_config),
            "MILVUS_RUN_DIR": str(data_dir / "run"),
            "LD_LIBRARY_PATH": str(programs / "bin"),
        },
    )


@contextmanager
def milvus_lite_server(data_dir: Path) -> Iterator[str]:
    """A running Milvus Lite server's address."""
    with milvus_lite(data_dir) as server:
        yield server.uri


@contextmanager
def milvus_standalone_server(data_dir: Path) -> Iterator[str]:
    """A running Milvus standalone server's address; the one that MILVUS_URI names is used where it is set."""
    if uri := os.environ.get("MILVUS_URI"):
        yield uri
        return
    with milvus_standalone(data_dir) as server:
        yield server.uri
