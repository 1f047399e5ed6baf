"""Opens the store that a URL names, or says exactly why not. Leaves what it cannot open as it was."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.lowlevel
import attrs

from plugin_sdk.storage import (
    EventLoop,
    Storage,
    StorageError,
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
from plugins_builtin.storage_sqlite.held import hold
from plugins_builtin.storage_sqlite.migration import migrate_file
from plugins_builtin.storage_sqlite.readers import Readers
from plugins_builtin.storage_sqlite.reading_only import may_be_written, way_to_read
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
    await anyio.lowlevel.checkpoint_if_cancelled()  # else a thread might begin what was cancelled before
    await writer.start(opening.open)
    # No checkpoint from here on: a store that is open must reach the caller, who closes it.
    readers = Readers(opening.reading, faults, loop, opening.verify)
    return SqliteStorage(
        path=path,
        facts=opening.facts,
        writer=writer,
        readers=readers,
        wakes=wakes,
        loop=loop,
        refusal=opening.refusal,
        release=opening.release,
    )


@attrs.define(eq=False, repr=False, kw_only=True)
class _Opening:
    """One attempt to open a file, in the thread that will write to it.

    Attributes:
        facts: What was opened.
        reading: The database for views.
        verify: What follows each view, and raises if that cannot be relied upon.
        refusal: What all writing meets, if the store is only read.
        release: What to call when the file was closed.
    """

    path: Path
    faults: Faults
    layout: Layout
    create: bool
    migrate: bool
    facts: StorageFacts = attrs.field(init=False)
    reading: Database = attrs.field(init=False)
    verify: Callable[[], None] = attrs.field(init=False, default=lambda: None)
    refusal: Callable[[], StorageError] | None = attrs.field(init=False, default=None)
    release: Callable[[], None] = attrs.field(init=False)

    def open(self) -> Database:
        """Returns the database for writing, or for looking what others write if nothing may be written."""
        self._find()
        self.facts = StorageFacts(kind="sqlite", place=str(self.path), schema=self.layout.version)
        try:
            self.release = hold(self.path)
        except OSError as error:
            raise self.faults.of_file(error) from error
        try:
            return self._opened()
        except BaseException:
            self.release()
            raise

    def _opened(self) -> Database:
        if may_be_written(self.path):
            return self._open_to_write()
        if self.create or self.migrate:
            raise self.faults.read_only()
        return self._open_to_read()

    def _find(self) -> None:
        if files.look(self.path, self.faults, layout=self.layout, migrate=self.migrate):
            return
        if not self.create:
            raise StorageMissingError(
                f"There is no store at '{self.path}'.", "Look at the path, or allow that one is made."
            )
        files.create(self.path, self.faults, layout=self.layout)

    def _open_to_write(self) -> Database:
        writing = self._database(WRITING)
        while not self._is_current(writing, _version_in_wal_mode):
            done = migrate_file(self.path, self.faults, layout=self.layout)
            if done is not None:
                found, backup = done
                self.facts = attrs.evolve(self.facts, migrated_from=found, backup=str(backup))
            writing = self._database(WRITING)
        self.reading = self._database(READING)
        return writing

    def _open_to_read(self) -> Database:
        way = way_to_read(self.path, self.faults)
        watching = self._database(READING, way.switches)
        self._is_current(watching, _version)  # or it raises, since nothing is to be migrated
        self.reading = self._database(READING, way.switches)
        self.verify, self.refusal = way.verify, self.faults.read_only
        return watching

    def _database(self, pragmas: Sequence[str], switches: str = "mode=rw") -> Database:
        from plugins_builtin.storage_sqlite.database import open_database  # takes a third of a second, the first time

        return open_database(self.path, seconds=self.faults.seconds, pragmas=pragmas, switches=switches)

    def _is_current(self, database: Database, version: Callable[[sqlite3.Connection], int]) -> bool:
        """Returns whether the database can be used as it is; if not, it is closed, and has to be migrated."""
        is_current = False
        try:
            connection = database.connection()
            found = patiently(lambda: version(connection), deadline=time.monotonic() + self.faults.seconds)
            files.check_version(found, self.path, layout=self.layout, migrate=self.migrate)
            if found == self.layout.version:
                self._check_table(connection)
                is_current = True
        except sqlite3.Error as error:
            raise self.faults.of(error) from error
        finally:
            if not is_current:
                database.close()
        return is_current

    def _check_table(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute(queries.GET, ("", b"")).fetchall()
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_ERROR:
                raise
            raise self.faults.damaged("its table is missing") from error


def _version(connection: sqlite3.Connection) -> int:
    return number(connection, queries.USER_VERSION)


def _version_in_wal_mode(connection: sqlite3.Connection) -> int:
    """Returns the version at a moment after which nobody migrates: leaving WAL mode needs us gone."""
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    return _version(connection)


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
