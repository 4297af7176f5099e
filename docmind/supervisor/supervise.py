"""The loop: prepare, start, watch, start again, stop.

1. The vector server starts; meanwhile a short-lived process migrates, seeds, makes the administrator and queues the
   sample documents.
2. Worker and web server start. When all answer, address and sign-in are printed.
3. Signals, ends of processes and output wake the loop; once a second it looks for parts that hang.
4. At the end the web server and the worker are asked to stop, then the vector server; what does not is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import IO, Any

from docmind.supervisor.output import LinePrinter, say
from docmind.supervisor.part import Part, PartSpec, kill_group, spawn
from docmind.supervisor.surroundings import Surroundings
from docmind.supervisor.tether import adopt_orphans

START_S = 120.0
"""A part that is not healthy so long after its start is killed."""
HUNG_S = 60.0
STOP_S = 10.0
TICK_S = 1.0
STARTING_TICK_S = 0.1
BOOTSTRAP = (sys.executable, "manage.py", "bootstrap", "--json")


class StopRequestedError(Exception):
    """Somebody asked for the end."""


class GivenUpError(Exception):
    """It makes no sense to go on; the message says why."""


class Supervisor:
    def __init__(self, surroundings: Surroundings, vectors: PartSpec | None, others: Iterable[PartSpec]) -> None:
        self._surroundings = surroundings
        self._vectors = Part(vectors) if vectors else None
        self._others = [Part(spec) for spec in others]
        self._selector = selectors.DefaultSelector()
        self._stop_requested = False
        self._password = ""

    def run(self) -> int:
        """Returns the exit status: 0 when asked to stop, 1 when given up."""
        adopt_orphans()
        self._listen_to_signals()
        began = time.monotonic()
        try:
            if self._vectors:
                self._start(self._vectors)
            prepared = self._prepare()
            for part in self._others:
                self._start(part)
            while not all(part.is_healthy for part in self._parts):
                self._tick()
            self._welcome(prepared, time.monotonic() - began)
            while True:
                self._tick()
        except StopRequestedError:
            say("Stopping.")
            return 0
        except GivenUpError as reason:
            say(f"DocMind gives up: {reason}")
            return 1
        finally:
            self._print_password()
            self._stop_all()

    @property
    def _parts(self) -> list[Part]:
        return [self._vectors, *self._others] if self._vectors else self._others

    def _listen_to_signals(self) -> None:
        readable, writable = os.pipe()
        for end in (readable, writable):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        self._selector.register(readable, selectors.EVENT_READ)
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                signal.signal(signum, self._request_stop)
        signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)  # only to wake the loop

    def _request_stop(self, _signum: int, _frame: object) -> None:
        self._stop_requested = True

    def _start(self, part: Part) -> None:
        self._listen_to_output(part.start(), part.name)

    def _listen_to_output(self, descriptor: int, name: str) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, LinePrinter(name, descriptor))

    def _prepare(self) -> dict[str, Any]:
        """Run the bootstrap command to its end. Returns what it reports."""
        process = spawn(BOOTSTRAP, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 (for the type checker)
        self._listen_to_output(process.stderr.fileno(), "prepare")
        os.set_blocking(process.stdout.fileno(), False)
        report = bytearray()
        try:
            while process.poll() is None:
                self._tick()
                report += process.stdout.read() or b""
            report += process.stdout.read() or b""
        finally:
            kill_group(process)
            self._close_output(process.stderr)
            process.stdout.close()
        if process.returncode != 0:
            raise GivenUpError("the database could not be prepared; the lines above say why.")
        found: dict[str, Any] = json.loads(report)
        self._password = found["password"]
        return found

    def _tick(self) -> None:
        """Wait for something to happen, and see to it."""
        if self._stop_requested:
            raise StopRequestedError
        settled = all(part.is_healthy for part in self._parts)
        self._pump(TICK_S if settled else STARTING_TICK_S)
        for part in self._parts:
            self._look_after(part)

    def _pump(self, timeout_s: float) -> None:
        for key, _events in self._selector.select(timeout_s):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
            elif not key.data.pump():
                self._selector.unregister(key.fd)

    def _look_after(self, part: Part) -> None:
        now = time.monotonic()
        if part.process is None:
            if part.start_again_at is not None and now >= part.start_again_at:
                self._start(part)
        elif part.has_ended():
            self._bury(part, f"ended ({_status(part.process.returncode)})")
        elif not part.is_healthy:
            if part.spec.is_healthy():
                part.is_healthy = True
                say(f"{part.name} is up ({now - part.started_at:.1f} s)")
            elif now - part.started_at > START_S:
                self._bury(part, f"did not answer within {START_S:.0f} s")
        elif part.hung_for_s() > HUNG_S:
            self._bury(part, f"gave no sign of life for {HUNG_S:.0f} s")

    def _bury(self, part: Part, what: str) -> None:
        """Kill the rest of the part's processes and set the time of its next start."""
        lived_s = time.monotonic() - part.started_at
        part.kill_group()
        self._close_output(part.output)
        delay_s = part.backoff.after_death(lived_s=lived_s, was_healthy=part.is_healthy)
        part.process, part.is_healthy = None, False
        if delay_s is None:
            raise GivenUpError(f"{part.name} {what}, {part.backoff.quick_deaths} times in a row right after its start.")
        say(f"{part.name} {what}; starting it again in {delay_s:.1f} s")
        part.start_again_at = time.monotonic() + delay_s

    def _close_output(self, pipe: IO[bytes] | None) -> None:
        """Print what is left in it."""
        if pipe is None or pipe.closed:
            return
        if pipe.fileno() in self._selector.get_map():
            printer: LinePrinter = self._selector.unregister(pipe.fileno()).data
            while printer.pump():
                if not _has_more(pipe.fileno()):
                    break
        pipe.close()

    def _welcome(self, prepared: dict[str, Any], seconds: float) -> None:
        say("")
        say(f"DocMind is ready after {seconds:.1f} s: {self._surroundings.address}")
        if self._password:
            self._print_password()
        elif prepared["created"]:
            say("Sign in as admin with the password from DOCMIND_ADMIN_PASSWORD.")
        else:
            say("Sign in as before (a new password: .venv/bin/python manage.py changepassword admin).")
        say("Ctrl-C stops it.")
        say("")

    def _print_password(self) -> None:
        """Once, also where the start failed after the administrator was made."""
        if self._password:
            say(f"Sign in as admin with the password {self._password} (it is shown only this once).")
            self._password = ""

    def _stop_all(self) -> None:
        for group in (self._others, [self._vectors] if self._vectors else []):
            for part in group:
                part.ask_to_stop()
            deadline = time.monotonic() + STOP_S
            while time.monotonic() < deadline and not all(p.process is None or p.has_ended() for p in group):
                self._pump(STARTING_TICK_S)
            for part in group:
                part.kill_group()
                self._close_output(part.output)


def _has_more(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


def _status(code: int) -> str:
    return f"status {code}" if code >= 0 else signal.Signals(-code).name
