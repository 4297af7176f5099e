"""The supervisor's pieces: restarts and when they end, the tie to a parent, output, locks and ports."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docmind.supervisor.guards import check_port, lock_data_folder
from docmind.supervisor.output import LinePrinter
from docmind.supervisor.part import MAX_QUICK_DEATHS, Backoff, Part, PartSpec
from docmind.supervisor.probes import accepts_connections, answers_http, has_pulse
from docmind.supervisor.surroundings import PROJECT, CannotStartError, Surroundings
from tests.servers import free_ports
from tests.supervisor.processes import alive, descendants, wait_for


def test_it_waits_longer_after_each_quick_death_and_then_gives_up() -> None:
    backoff = Backoff()
    delays = [backoff.after_death(lived_s=1, was_healthy=True) for _death in range(MAX_QUICK_DEATHS)]
    assert delays[-1] is None
    waits = [delay for delay in delays if delay is not None]
    assert len(waits) == MAX_QUICK_DEATHS - 1
    assert waits == sorted(set(waits))


def test_it_forgets_quick_deaths_after_a_long_life() -> None:
    backoff = Backoff()
    first = backoff.after_death(lived_s=1, was_healthy=False)
    for _death in range(3 * MAX_QUICK_DEATHS):
        assert backoff.after_death(lived_s=3600, was_healthy=True) == first
    assert backoff.quick_deaths == 0


def test_it_counts_a_death_before_health_as_quick() -> None:
    backoff = Backoff()
    backoff.after_death(lived_s=100, was_healthy=False)
    assert backoff.quick_deaths == 1


GIVING_UP = """
import sys
from docmind.supervisor import part, supervise
from docmind.supervisor.surroundings import Surroundings

part.FIRST_DELAY_S = 0.01
supervise.BOOTSTRAP = (sys.executable, "-S", "-c", 'print(\\'{"password": "s3cret", "created": true}\\')')
found = Surroundings(data_dir="", host="127.0.0.1", port=1, vector_port=None)
failure = (sys.executable, "-S", "-c", "print('no luck'); raise SystemExit(3)")
broken = part.PartSpec(name="broken", command=failure, is_healthy=lambda: False)
steady = part.PartSpec(
    name="steady", command=(sys.executable, "-S", "-c", "import time; time.sleep(600)"), is_healthy=lambda: True
)
sys.exit(supervise.Supervisor(found, None, (steady, broken)).run())
"""


def test_it_gives_up_loudly_and_ends_the_rest_when_a_part_keeps_dying() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GIVING_UP], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stdout.count("no luck") == MAX_QUICK_DEATHS
    assert "gives up: broken ended (status 3)" in done.stdout
    assert "password s3cret" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ties_a_command_and_what_that_forks_to_its_parent() -> None:
    forks = "from docmind.supervisor.tether import tie_forks; import os, time; tie_forks(); os.fork(); time.sleep(600)"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from docmind.supervisor.part import spawn; import sys, time; "
            f"spawn((sys.executable, '-c', {forks!r})); time.sleep(600)",
        ],
        cwd=PROJECT,
    )
    try:
        wait_for(lambda: len(descendants(parent.pid)) == 2, "the command and its fork")
        pids = descendants(parent.pid)
        parent.kill()
        parent.wait()
        wait_for(lambda: not alive(pids), "the end of both", 10)
    finally:
        parent.kill()


def test_it_prints_whole_lines_under_the_name_of_the_part(capsys: pytest.CaptureFixture[str]) -> None:
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    printer = LinePrinter("web", readable)
    os.write(writable, b"first\nsec")
    assert printer.pump()
    assert capsys.readouterr().out == "web     | first\n"
    assert printer.pump()  # nothing has come, and nothing is lost
    os.write(writable, "ond 第二".encode())
    os.close(writable)
    assert printer.pump()
    assert not printer.pump()
    assert capsys.readouterr().out == "web     | second 第二\n"
    os.close(readable)


def test_it_takes_the_lock_of_a_data_folder_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with lock_data_folder(folder, "http://127.0.0.1:8000"):
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(CannotStartError, match=rf"already: http://127.0.0.1:8000, process {os.getpid()}\."):
            lock_data_folder(folder, "http://127.0.0.1:9000")
    lock_data_folder(folder, "http://127.0.0.1:9000").close()


def test_it_says_which_port_is_taken_and_what_to_set() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStartError, match=rf"Port {port} on 127.0.0.1 .* Set DOCMIND_PORT") as caught:
            check_port("127.0.0.1", port, "DOCMIND_PORT", patience_s=0)
        assert "\n" not in str(caught.value)
        assert accepts_connections("127.0.0.1", port)
    check_port("127.0.0.1", port, "DOCMIND_PORT", patience_s=0)


def test_it_takes_silence_for_no_health(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    assert not accepts_connections("127.0.0.1", port)
    assert not answers_http("127.0.0.1", port, "/")
    assert not has_pulse(tmp_path / "pulse")
    (tmp_path / "pulse").touch()
    assert has_pulse(tmp_path / "pulse")
    os.utime(tmp_path / "pulse", (0, 0))
    assert not has_pulse(tmp_path / "pulse")


def test_it_notices_a_pulse_that_has_stopped(tmp_path: Path) -> None:
    pulse = tmp_path / "pulse"
    pulse.touch()
    part = Part(PartSpec(name="worker", command=("true",), is_healthy=lambda: True, pulse=pulse), is_healthy=True)
    assert part.hung_for_s() < 1
    part.pulse_seen_at = time.monotonic() - 100
    assert part.hung_for_s() >= 100
    os.utime(pulse, (1, 1))  # any change is a sign of life, whatever the clock says
    assert part.hung_for_s() < 1


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80")],
)
def test_it_prints_an_address_that_a_browser_can_open(host: str, address: str) -> None:
    assert Surroundings(data_dir="", host=host, port=80, vector_port=None).address == address


def test_it_asks_to_stop_with_the_signal_that_the_part_understands() -> None:
    part = Part(PartSpec(name="p", command=("sleep", "600"), is_healthy=lambda: True, stop_signal=signal.SIGINT))
    part.start()
    try:
        part.ask_to_stop()
        assert part.process is not None
        assert part.process.wait(30) != 0
    finally:
        part.kill_group()
