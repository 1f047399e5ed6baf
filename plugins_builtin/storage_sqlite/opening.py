"""Opens the store that a URL names, or says exactly why not. Leaves what it cannot open as it was."""

from __future__ import annotations

import math
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from plugin_sdk.storage import (
    EventLoop,
    Storage,
    StorageFacts,
    StorageMissingError,
    StorageUrlError,
    Wakes,
    path_of,
    shown,
    switches_of,
)
from plugins_builtin.storage_sqlite import files, queries
from plugins_builtin.storage_sqlite.connecting import READING, WRITING, number, patiently
from plugins_builtin.storage_sqlite.faults import Faults, code_of
from plugins_builtin.storage_sqlite.migration import migrate_file
from plugins_builtin.storage_sqlite.readers import Readers
from plugins_builtin.storage_sqlite.schema import LAYOUT, Layout
from plugins_builtin.storage_sqlite.store import SqliteStorage
from plugins_builtin.storage_sqlite.writer import Writer

if TYPE_CHECKING:
    from plugins_builtin.storage_sqlite.database import Database

_LONGEST_WAIT = 1_000_000
"""Seconds; SQLite counts milliseconds in 32 bits."""


async def open_store(url: str, *, create: bool = True, migrate: bool = True, layout: Layout = LAYOUT) -> Storage:
    """Opens a store.

    Args:
        url: ``sqlite:///path`` or ``sqlite:path``; ``?timeout=`` says how many seconds to wait for another process.
        create: Whether a store is made where there is none.
        migrate: Whether an older layout is brought up to date.
        layout: What the file should look like inside.

    Raises:
        StorageUrlError: The URL is not one of this backend.
        StorageMissingError: There is no store, and none should be made.
        StorageVersionError: It was written by a newer version, or needs a migration that was not asked for.
        StorageForeignError: Something else is there.
        StorageDamagedError: It is broken.
        StorageError: It cannot be reached, read or written.
    """
    path, seconds = _named(url)
    faults, loop, wakes = Faults(path=path, seconds=seconds), EventLoop(), Wakes()
    opening = _Opening(path=path, faults=faults, layout=layout, create=create, migrate=migrate)
    writer = Writer(faults, loop, wakes)
    await writer.start(opening.open)
    return SqliteStorage(path, opening.facts, writer, Readers(opening.reading, faults, loop), wakes)


@attrs.define(eq=False, repr=False, kw_only=True)
class _Opening:
    """One attempt to open a file, in the thread that will write to it."""

    path: Path
    faults: Faults
    layout: Layout
    create: bool
    migrate: bool
    facts: StorageFacts = attrs.field(init=False)
    reading: Database = attrs.field(init=False)

    def open(self) -> Database:
        """Returns the database for writing."""
        self._find()
        writing, found, backup = None, None, None
        while writing is None:
            writing = self._connected()
            if writing is None:
                done = migrate_file(self.path, self.faults, layout=self.layout)
                found, backup = done or (found, backup)
        self.facts = StorageFacts(
            kind="sqlite",
            place=str(self.path),
            schema=self.layout.version,
            backup=None if backup is None else str(backup),
            migrated_from=found,
        )
        return writing

    def _find(self) -> None:
        if files.look(self.path, self.faults, layout=self.layout, migrate=self.migrate):
            return
        if not self.create:
            raise StorageMissingError(
                f"There is no store at '{self.path}'.", "Look at the path, or allow that one is made."
            )
        files.create(self.path, self.faults, layout=self.layout)

    def _connected(self) -> Database | None:
        """Returns the database, or None when it has to be migrated first."""
        from plugins_builtin.storage_sqlite.database import open_database  # takes a third of a second, the first time

        seconds = self.faults.seconds
        database = open_database(self.path, seconds=seconds, pragmas=WRITING)
        try:
            connection = database.connection()
            found = patiently(lambda: _version_in_wal_mode(connection), deadline=time.monotonic() + seconds)
            files.check_version(found, self.path, layout=self.layout, migrate=self.migrate)
            if found < self.layout.version:
                database.close()
                return None
            self._check_table(connection)
        except sqlite3.Error as error:
            database.close()
            raise self.faults.of(error) from error
        except BaseException:
            database.close()
            raise
        self.reading = open_database(self.path, seconds=seconds, pragmas=READING)
        return database

    def _check_table(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute(queries.GET, ("", b"")).fetchall()
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_ERROR:
                raise
            raise self.faults.damaged("its table is missing") from error


def _version_in_wal_mode(connection: sqlite3.Connection) -> int:
    """Returns the version at a moment after which nobody migrates: leaving WAL mode needs us gone."""
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    return number(connection, queries.USER_VERSION)


def _named(url: str) -> tuple[Path, float]:
    if url.partition(":")[2].lstrip("/").startswith(":memory:"):
        raise StorageUrlError(
            f"The storage URL '{shown(url)}' names no file, and a sqlite store is one.", "Use 'memory:' instead."
        )
    value = switches_of(url, known={"timeout": "30"})["timeout"]
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_WAIT:
        raise StorageUrlError(
            f"The timeout in '{shown(url)}' is not a number of seconds.", "Write it like '?timeout=30'."
        )
    return path_of(url).absolute(), seconds
