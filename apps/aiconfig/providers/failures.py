"""Turns what a model service answers into TransientError or PermanentError, with a message for an administrator.

A message may quote the service, but never a key, nor an address that carries a password.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from django.utils.translation import gettext as _

from docmind.errors import DocMindError, PermanentError, TransientError

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "arrearage", "billing_hard_limit_reached", "allocationquota.freetieronly"}
)
_KEY_CODES = frozenset({"invalid_api_key", "invalidapikey"})
_KEY = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w*.-]{6,}")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s@]+@")
_QUOTED_CHARS = 300


class ServiceError(TransientError):
    """A model service failed in a way that may pass; `retry_after_s` is what it asked to be waited."""

    default_code = "model_unavailable"

    def __init__(self, message: str, *, code: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


def from_status(
    status: int, *, code: str = "", message: str = "", retry_after: str | None = None, secrets: Sequence[str] = ()
) -> DocMindError:
    """The error for an HTTP status, the service's own error code and message, and its Retry-After header."""
    quote = quotable(message, secrets)
    if code.lower() in _QUOTA_CODES:
        return PermanentError(
            _("The model service refuses more calls for this account: %(reason)s") % {"reason": quote},
            code="model_quota",
        )
    if status in {401, 403} or code.lower() in _KEY_CODES:
        return PermanentError(
            _("The model service refused the API key (status %(status)d). Check the key.") % {"status": status},
            code="model_key_refused",
        )
    if status == 429:
        return ServiceError(
            _("The model service is busy (too many requests)."),
            code="model_busy",
            retry_after_s=parse_retry_after(retry_after),
        )
    if status >= 500 or status in _TRANSIENT_STATUS:
        return ServiceError(
            _("The model service failed (status %(status)d).") % {"status": status},
            retry_after_s=parse_retry_after(retry_after),
        )
    if status == 404:
        return PermanentError(
            _("The model service does not know this model or address: %(reason)s") % {"reason": quote},
            code="model_not_found",
        )
    return PermanentError(
        _("The model service refused the request (status %(status)d): %(reason)s")
        % {"status": status, "reason": quote},
        code="model_request_refused",
    )


def unreachable() -> ServiceError:
    return ServiceError(_("The connection to the model service failed."))


def timed_out() -> ServiceError:
    return ServiceError(_("The model service did not answer in time."), code="model_timeout")


def unreadable() -> ServiceError:
    return ServiceError(_("The model service sent a reply that could not be read."), code="model_reply_unreadable")


def quotable(text: str, secrets: Sequence[str]) -> str:
    """`text` on one line, shortened, without the given secrets and what looks like one."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    text = _PASSWORD_IN_ADDRESS.sub("://***@", _KEY.sub("***", " ".join(text.split())))
    return text if len(text) <= _QUOTED_CHARS else text[: _QUOTED_CHARS - 1] + "…"


def parse_retry_after(header: str | None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or an HTTP date; None if it is missing or unreadable."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
