"""Bounds how long a server may take to answer. Bounds no transaction: that takes as long as it takes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from plugins_builtin.storage_postgres.connection import Connection


@contextmanager
def at_most(connection: Connection, seconds: float) -> Iterator[None]:
    """Cuts the connection when what is done inside takes longer; that then fails as with any lost connection."""
    timer = threading.Timer(seconds, _cut, (connection,))
    timer.name, timer.daemon = "storage-postgres-patience", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # afterwards the connection may be closed, and its number belong to another


def _cut(connection: Connection) -> None:
    with (
        suppress(OSError, psycopg.Error),
        socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as end,
    ):
        end.shutdown(socket.SHUT_RDWR)
