"""The real thing: vector server, worker and web server under one supervisor, on their own data folder and ports."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from docmind.supervisor.surroundings import PROJECT
from tests.factories import PASSWORD
from tests.servers import free_ports
from tests.supervisor.processes import alive, command_of, descendants, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

OTHER_SERVICES = ("DATABASE_URL", "REDIS_URL", "MILVUS_URI", "S3_BUCKET", "DOCMIND_TEST_SERVICES", "DOCMIND_HOST")
WORKER_PROCESSES = 5
"""Parent, guard, worker proper, monitor and pusher."""
COMMAND = [sys.executable, "-m", "docmind.supervisor"]


class Running:
    """One `make up`, without make."""

    def __init__(self, folder: Path) -> None:
        self.port, vector_port = free_ports(2)
        self.log = folder / "output.txt"
        self.environment = {name: value for name, value in os.environ.items() if name not in OTHER_SERVICES} | {
            "DOCMIND_DATA_DIR": str(folder / "data"),
            "DOCMIND_PORT": str(self.port),
            "DOCMIND_MILVUS_LITE_PORT": str(vector_port),
            "DOCMIND_EMBEDDING_PROVIDER": "none",
            "DOCMIND_ADMIN_PASSWORD": PASSWORD,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                COMMAND, cwd=PROJECT, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(lambda: self.has_ended or "DocMind is ready" in self.output, "DocMind is ready")
        assert not self.has_ended, self.output

    def start_another(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """A second one beside it, which is expected to refuse."""
        return subprocess.run(
            COMMAND,
            cwd=PROJECT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def processes_of(self, words: str) -> set[int]:
        return {pid for pid in descendants(self.pid) if words in command_of(pid)}

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            connection.close()

    def part(self, name: str) -> str:
        return str(self.get("/api/health/ready/")[1].get("parts", {}).get(name, {}).get("status"))

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    docmind = Running(tmp_path_factory.mktemp("whole"))
    docmind.start()
    yield docmind
    docmind.end()


def test_it_is_ready_with_every_part(running: Running) -> None:
    wait_for(lambda: running.get("/api/health/ready/")[1].get("status") == "ready", "the end of the warm-up")
    status, report = running.get("/api/health/ready/")
    assert status == 200
    assert {part["status"] for part in report["parts"].values()} == {"up", "off"}
    assert "Sign in as admin with the password" in running.output


def test_it_keeps_the_data_folder_private(running: Running) -> None:
    folder = Path(running.environment["DOCMIND_DATA_DIR"])
    assert folder.stat().st_mode & 0o077 == 0


def test_the_main_job_by_api_alone(running: Running) -> None:
    """Token, knowledge base, 200 KB of Markdown, ready, search, ask: as a script of a stranger would do it."""
    with httpx.Client(base_url=f"http://127.0.0.1:{running.port}", timeout=30) as client:
        token = client.post("/api/auth/token/", json={"username": "admin", "password": PASSWORD}).json()["access"]
        client.headers["Authorization"] = f"Bearer {token}"
        kb_id = client.post("/api/kb/knowledge-bases/", json={"name": "运维手册"}).json()["id"]
        handbook = handbook_of(200_000)
        uploaded = client.post(
            f"/api/kb/knowledge-bases/{kb_id}/documents/", files={"file": ("handbook.md", handbook.encode())}
        )
        assert uploaded.status_code == 202
        document_url = f"/api/kb/documents/{uploaded.json()['id']}/"
        wait_for(lambda: client.get(document_url).json()["status"] == "ready", "the document")

        search = {"query": "拆分", "kb_ids": [kb_id]}
        assert "拆分为四个" in client.post("/api/kb/search/", json=search).json()["results"][0]["content"]

        question = {"question": "服务 97 的 maxPoolSize 是多少？", "kb_ids": [kb_id]}
        with client.stream("POST", "/api/chat/ask/", json=question) as stream:
            frames = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
        done = json.loads(frames[-1])
        markdown = client.get(f"{document_url}content/").json()["markdown"]
        passages = [markdown[citation["start"] : citation["end"]] for citation in done["citations"]]
        assert any("`maxPoolSize` 为 1097" in passage for passage in passages)
        assert done["confidenceBand"] in {"HIGH", "MEDIUM", "LOW"}


def handbook_of(size_bytes: int) -> str:
    """Markdown of about that size: sections that differ in their numbers, one of them with the word 拆分."""
    parts = ["# 运维手册", "## 分片", "数据量超过上限时，把分片拆分为四个，再重新均衡。"]
    number = 0
    while sum(len(part.encode()) for part in parts) < size_bytes:
        number += 1
        parts.append(f"## 服务 {number}")
        parts.append(f"服务 {number} 的 `maxPoolSize` 为 {1000 + number}，超时后返回 E{2000 + number}。" * 3)
    return "\n\n".join(parts)


def test_it_refuses_a_second_start_on_the_same_folder_in_one_line(running: Running) -> None:
    second = running.start_another()
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "is running on the data folder" in second.stderr
    assert str(running.pid) in second.stderr


def test_it_refuses_a_taken_port_in_one_line(running: Running, tmp_path: Path) -> None:
    second = running.start_another(DOCMIND_DATA_DIR=str(tmp_path / "other"))
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert f"Port {running.port}" in second.stderr
    assert "DOCMIND_PORT" in second.stderr


def test_it_refuses_a_data_folder_that_cannot_be_written_in_one_line(running: Running, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    second = running.start_another(DOCMIND_DATA_DIR=str(tmp_path / "file" / "data"))
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "data folder" in second.stderr


def test_it_brings_a_killed_web_server_back(running: Running) -> None:
    (web,) = running.processes_of("uvicorn")
    os.kill(web, signal.SIGKILL)
    wait_for(lambda: web not in alive({web}), "the end of the web server")
    wait_for(lambda: running.get("/api/health/live/")[0] == 200, "a new web server")
    assert running.processes_of("uvicorn") != {web}


@pytest.mark.parametrize("which", [min, max], ids=["its parent process", "one of its children"])
def test_it_replaces_the_whole_worker_when_one_of_its_processes_is_killed(running: Running, which: Any) -> None:
    wait_for(lambda: len(running.processes_of("manage.py worker")) == WORKER_PROCESSES, "a whole worker")
    old = running.processes_of("manage.py worker")
    os.kill(which(old), signal.SIGKILL)
    wait_for(lambda: not alive(old), "the end of all processes of the old worker")
    wait_for(lambda: running.part("worker") == "up", "a new worker")


def test_it_brings_a_killed_vector_server_back(running: Running) -> None:
    (vectors,) = running.processes_of("milvus_lite")
    os.kill(vectors, signal.SIGKILL)
    wait_for(lambda: running.part("vectors") == "down", "the failure to be seen")
    wait_for(lambda: running.part("vectors") == "up", "a new vector server")


def test_it_leaves_no_process_behind_on_sigterm_and_starts_again_on_the_same_data(running: Running) -> None:
    pids = descendants(running.pid)
    os.kill(running.pid, signal.SIGTERM)
    assert running.process is not None
    assert running.process.wait(60) == 0
    assert not alive(pids)
    running.start()
    assert "Sign in as before" in running.output


def test_it_leaves_no_process_behind_when_it_is_killed_itself(running: Running) -> None:
    pids = descendants(running.pid)
    assert len(pids) > 4
    os.kill(running.pid, signal.SIGKILL)
    assert running.process is not None
    running.process.wait(60)
    wait_for(lambda: not alive(pids), "the end of all its processes", 10)
