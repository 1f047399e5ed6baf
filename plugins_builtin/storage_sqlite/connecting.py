"""Connects the driver to one file, with the pragmas that durability needs. Makes no file, and runs no query."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from plugins_builtin.storage_sqlite.faults import is_busy

R = TypeVar("R")

_PREPARED = 64
_PAUSE = 0.05

_EVERYWHERE = ("PRAGMA cell_size_check = ON", "PRAGMA trusted_schema = OFF")
WRITING = (*_EVERYWHERE, "PRAGMA synchronous = FULL", "PRAGMA journal_size_limit = 67108864")
READING = (*_EVERYWHERE, "PRAGMA query_only = ON")


def connect(path: Path, *, seconds: float, pragmas: Sequence[str], switches: str = "mode=rw") -> sqlite3.Connection:
    """Returns a connection to an existing file, in which nothing begins a transaction by itself.

    Args:
        path: The file.
        seconds: How long to wait for another process' lock.
        pragmas: What the connection is told first.
        switches: What SQLite is told in the name of the file; it is never made.

    Raises:
        sqlite3.Error: The file cannot be opened, or refuses a pragma.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{switches}",
        uri=True,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,  # the store is closed from another thread than those that used it
        cached_statements=_PREPARED,
    )
    try:
        for pragma in pragmas:
            connection.execute(pragma).close()
    except BaseException:
        connection.close()
        raise
    return connection


def number(connection: sqlite3.Connection, sql: str) -> int:
    """Returns the one number that a statement answers.

    Raises:
        sqlite3.Error: The store failed.
    """
    return int(connection.execute(sql).fetchall()[0][0])


def patiently(attempt: Callable[[], R], *, deadline: float) -> R:
    """Repeats what SQLite itself does not wait for, until the deadline on the monotonic clock.

    Raises:
        sqlite3.Error: It failed, or is still busy at the deadline.
    """
    while True:
        try:
            return attempt()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE * random.uniform(0.1, 1))
