"""Keeps the connections that nobody uses at the moment. Limits nobody: as many are open as there are threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from plugins_builtin.storage_postgres.connection import Connection


@attrs.define(eq=False, repr=False)
class Pool:
    """The idle connections of a store, used from many threads."""

    _dial: Callable[[], Connection]
    _idle: list[Connection] = attrs.field(init=False, factory=list)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)

    def take(self) -> tuple[Connection, bool]:
        """Returns a connection for one thread alone, and whether it was used before.

        Raises:
            StorageError: There was none, and none is to be had.
        """
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return self._dial(), False

    def take_idle(self) -> Connection | None:
        """Returns a connection that is there already, if there is one."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: Connection) -> None:
        """Keeps a connection that is still good."""
        with self._lock:
            self._idle.append(connection)

    def empty(self) -> None:
        """Closes the idle connections: they were lost, or the store is closed."""
        with self._lock:
            connections, self._idle[:] = list(self._idle), []
        for connection in connections:
            connection.close()
