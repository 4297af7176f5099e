"""With DOCMIND_TEST_SERVICES=1 every test has what it needs, so a skipped test is a failed session."""

from __future__ import annotations

import os

import pytest

_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped and os.environ.get("DOCMIND_TEST_SERVICES") == "1" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped and os.environ.get("DOCMIND_TEST_SERVICES") == "1":
        terminalreporter.section("skipped although all services are there", sep="=", red=True)
        for nodeid in sorted(set(_skipped)):
            terminalreporter.write_line(nodeid, red=True)
