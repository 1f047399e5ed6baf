"""The only door to dataset: hands each thread its connection to one file. Runs no query of its own.

What is hot runs as prepared statements on the driver's connection: through the layers above each costs ten times that.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import attrs
import dataset
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from plugins_builtin.storage_sqlite.connecting import connect


@attrs.define(eq=False, repr=False)
class Database:
    """The connections of one role to one file, which must exist."""

    _database: dataset.Database
    # What the layers above have made for each thread: asking them each time costs more than a statement.
    _made: threading.local = attrs.field(init=False, factory=threading.local)

    def connection(self) -> sqlite3.Connection:
        """Returns this thread's connection, in which nothing begins a transaction by itself.

        Raises:
            sqlite3.Error: The file cannot be opened.
        """
        connection: sqlite3.Connection | None = getattr(self._made, "connection", None)
        if connection is None:
            connection = self._made.connection = self._make()
        return connection

    def _make(self) -> sqlite3.Connection:
        try:
            connection = self._database.executable.connection.driver_connection
        except DBAPIError as error:
            if isinstance(error.orig, sqlite3.Error):
                raise error.orig from error
            raise
        assert isinstance(connection, sqlite3.Connection)
        return connection

    def renew(self) -> None:
        """Gives up this thread's connection, so that the next use makes another."""
        self._made.connection = None
        self._database.executable.invalidate()

    def close(self) -> None:
        """Closes the connections of all threads; twice is harmless."""
        self._database.close()


def open_database(path: Path, *, seconds: float, pragmas: Sequence[str], switches: str = "mode=rw") -> Database:
    """Returns a database of which nothing is open yet.

    Args:
        path: The file; it is not made when it is missing.
        seconds: How long a connection waits for another process' lock.
        pragmas: What each new connection is told.
        switches: What SQLite is told in the name of the file.
    """

    def creator() -> sqlite3.Connection:
        return connect(path, seconds=seconds, pragmas=pragmas, switches=switches)

    options = {"creator": creator, "poolclass": NullPool}
    return Database(dataset.Database("sqlite://", engine_kwargs=options, ensure_schema=False, sqlite_wal_mode=False))
