"""Short write transactions whose lock conflicts are transient errors.

Order of locks everywhere: document, then knowledge base, then chunks, then term statistics in sorted order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, transaction
from django.utils.translation import gettext as _

from docmind.errors import TransientError

P = ParamSpec("P")
T = TypeVar("T")

CONFLICT_ATTEMPTS = 4


@contextmanager
def write_transaction() -> Iterator[None]:
    """`transaction.atomic` in which a deadlock, a lock waited for too long or a lost connection is transient."""
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        raise TransientError(_("The database is busy."), code="database_busy") from error


def retried(func: Callable[P, T]) -> Callable[P, T]:
    """Runs a function that is one write transaction again when it met a conflict; inside another transaction, once."""

    @wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        attempts = 1 if transaction.get_connection().in_atomic_block else CONFLICT_ATTEMPTS
        for _attempt in range(attempts - 1):
            try:
                return func(*args, **kwargs)
            except TransientError as error:
                if error.code != "database_busy":
                    raise
        return func(*args, **kwargs)

    return call
