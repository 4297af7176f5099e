"""A connection that survives what happens to servers and processes.

1. It is opened by the first call of a process and by the first call of a forked child: gRPC's threads do not survive a
   fork, and the SDK need not be loaded by commands that never search.
2. A server forgets which collections were loaded when it restarts: a call that is told "not loaded" loads the
   collection and is made once more.
3. A server goes away and comes back: a call whose connection breaks is made again after a short wait. All calls can be
   repeated, because writes and deletions go by id. A call that ran into its deadline is not repeated.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from docmind.vectors.errors import CollectionNotLoadedError, VectorStoreUnavailableError

if TYPE_CHECKING:
    from docmind.vectors.connection import Connection

T = TypeVar("T")

RETRY_WAITS_S = (0.05, 0.2)
RETRY_WITHIN_S = 1.0
LOAD_TIMEOUT_S = 20.0


class _Slot:
    """The connection of one process. `inherited` keeps a parent's alive: closing it here would disturb the parent."""

    def __init__(self, inherited: _Slot | None = None) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.connection: Connection | None = None
        self.inherited = inherited


class ReconnectingClient:
    """Runs operations on the process's connection. Safe for threads and forks; opens nothing by itself."""

    def __init__(self, uri: str, token: str, timeout_s: float) -> None:
        self._uri = uri
        self._token = token
        self._timeout_s = timeout_s
        self._slot = _Slot()

    def run(self, operation: Callable[[Connection], T], collection: str | None = None) -> T:
        """What `operation` returns; `collection` is loaded when the server says that it is not.

        Raises the errors of `docmind.vectors.errors`.
        """
        give_up_at = time.monotonic() + RETRY_WITHIN_S
        waits_s = iter(RETRY_WAITS_S)
        while True:
            try:
                return self._run_loaded(operation, collection)
            except VectorStoreUnavailableError:
                wait_s = next(waits_s, None)
                if wait_s is None or time.monotonic() > give_up_at:
                    raise
                time.sleep(wait_s)

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        slot, self._slot = self._slot, _Slot()
        if slot.connection is not None and slot.pid == os.getpid():
            slot.connection.close()

    def _run_loaded(self, operation: Callable[[Connection], T], collection: str | None) -> T:
        connection = self._connection()
        try:
            return operation(connection)
        except CollectionNotLoadedError:
            if collection is None:
                raise
            connection.load(collection, timeout_s=LOAD_TIMEOUT_S)
            return operation(connection)

    def _connection(self) -> Connection:
        slot = self._slot
        if slot.pid != os.getpid():
            slot = self._slot = _Slot(inherited=slot)
        with slot.lock:
            if slot.connection is None:
                from docmind.vectors.connection import Connection  # noqa: PLC0415 -- 3 s and 150 MB, for those who search

                slot.connection = Connection(self._uri, self._token, self._timeout_s)
            return slot.connection
