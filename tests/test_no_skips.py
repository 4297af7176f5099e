"""On services a skipped test fails the session; elsewhere it may be skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUITE = """
import pytest

def test_passes():
    pass

@pytest.mark.skipif(True, reason="no server")
def test_is_skipped():
    pass
"""


@pytest.mark.parametrize(("services", "status"), [("1", 1), ("", 0)])
def test_it_fails_a_session_with_a_skip_on_services_alone(tmp_path: Path, services: str, status: int) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    session = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "tests.no_skips", "-c", "pytest.ini", "."],
        cwd=tmp_path,
        env={**os.environ, "DOCMIND_TEST_SERVICES": services, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert session.returncode == status, session.stdout
    assert "1 passed, 1 skipped" in session.stdout
    assert ("test_suite.py::test_is_skipped" in session.stdout) == bool(services)
