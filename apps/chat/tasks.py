"""What the worker's schedule calls."""

from __future__ import annotations

from apps.chat import services
from docmind.telemetry import get_logger

logger = get_logger(__name__)


def fail_lost_runs() -> int:
    """Close the answers of processes that died. Returns how many."""
    count = services.fail_lost_runs()
    if count:
        logger.warning("runs_lost", count=count)
    return count
