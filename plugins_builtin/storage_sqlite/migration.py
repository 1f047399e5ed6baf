"""Brings an older file to the newest layout, after a backup, while every other process is kept out.

Whoever has a store open keeps it in WAL mode, which SQLite lets nobody leave while somebody else is connected. So a
migration leaves that mode first, and locks the file wholly: then nobody is there, and nobody comes. If it fails or is
killed, SQLite's journal brings the old layout back.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.connecting import WRITING, connect, number, patiently
from plugins_builtin.storage_sqlite.faults import Faults
from plugins_builtin.storage_sqlite.files import make_private, sync_file, sync_folder
from plugins_builtin.storage_sqlite.schema import Layout


def migrate_file(path: Path, faults: Faults, *, layout: Layout) -> tuple[int, Path] | None:
    """Migrates a file, unless another process did it meanwhile.

    Returns:
        The version that was found and the path of the backup, or None when there was nothing left to do.

    Raises:
        StorageBusyError: Another process has the store open.
        StorageError: It failed; the file is as it was.
        Exception: A step raised; the file is as it was.
    """
    deadline = time.monotonic() + faults.seconds
    try:
        locked = patiently(lambda: _alone(path, layout), deadline=deadline)
        if locked is None:
            return None
        found, opened = locked
        with closing(opened) as connection:
            backup = _back_up(connection, path, faults, version=found)
            _advance(connection, layout, found=found)
            return found, backup
    except sqlite3.Error as error:
        raise faults.of(error) from error
    except OSError as error:
        raise faults.of_file(error) from error


def _alone(path: Path, layout: Layout) -> tuple[int, sqlite3.Connection] | None:
    """Connects and locks at once or not at all: two that stayed connected would wait for each other to leave."""
    connection = connect(path, seconds=0, pragmas=WRITING)
    found = None
    try:
        found = _locked(connection, layout)
    finally:
        if found is None:
            connection.close()
    return None if found is None else (found, connection)


def _locked(connection: sqlite3.Connection, layout: Layout) -> int | None:
    """Locks the file for this connection alone, and returns its version, or None when it is no longer old."""
    found = number(connection, queries.USER_VERSION)
    if found >= layout.version:
        return None
    connection.execute("PRAGMA journal_mode = DELETE").close()
    connection.execute(queries.BEGIN_ALONE)
    found = number(connection, queries.USER_VERSION)
    if found >= layout.version or connection.execute("PRAGMA journal_mode").fetchall() != [("delete",)]:
        connection.execute(queries.ROLLBACK)  # somebody came between the two statements: look again
        return _locked(connection, layout)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").close()
    connection.execute(queries.COMMIT)  # the lock stays, by the locking mode; a backup needs the transaction ended
    return found


def _back_up(connection: sqlite3.Connection, path: Path, faults: Faults, *, version: int) -> Path:
    draft = path.with_name(f"{path.name}.backup-v{version}.part")
    draft.unlink(missing_ok=True)  # of a migration that was killed; the lock keeps others away from it
    make_private(draft)
    try:
        with closing(connect(draft, seconds=faults.seconds, pragmas=())) as copy:
            connection.backup(copy)
            _verify(copy, connection, faults)
        sync_file(draft)
        backup = draft.rename(_free_name(path, version))
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return backup


def _verify(copy: sqlite3.Connection, original: sqlite3.Connection, faults: Faults) -> None:
    wrong = [row[0] for row in copy.execute(queries.INTEGRITY) if row[0] != "ok"]
    if wrong:
        raise faults.damaged(f"a copy of it has {len(wrong)} faults")
    for what in (queries.USER_VERSION, "PRAGMA page_count"):
        if number(copy, what) != number(original, what):
            raise faults.damaged("a copy of it is not the same")


def _free_name(path: Path, version: int) -> Path:
    backup, tried = path.with_name(f"{path.name}.backup-v{version}"), 1
    while backup.exists():
        tried += 1
        backup = path.with_name(f"{path.name}.backup-v{version}-{tried}")
    return backup


def _advance(connection: sqlite3.Connection, layout: Layout, *, found: int) -> None:
    connection.execute(queries.BEGIN_ALONE)
    try:
        layout.advance(connection, found=found)
        connection.execute(queries.COMMIT)
    except BaseException:
        if connection.in_transaction:
            connection.execute(queries.ROLLBACK)
        raise
