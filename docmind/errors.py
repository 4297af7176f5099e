"""The two kinds of failure, told apart once, where the foreign error is met.

Every error carries `code` for programs and `message` for people; neither ever holds a secret, a stack or a path.
"""

from __future__ import annotations


class DocMindError(Exception):
    """Base of all errors that DocMind raises on purpose."""

    default_code = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code


class TransientError(DocMindError):
    """May succeed when tried again: time-outs, rate limits, a service that is down."""

    default_code = "temporarily_unavailable"


class PermanentError(DocMindError):
    """Will fail again until somebody changes the input or the configuration."""

    default_code = "invalid"
