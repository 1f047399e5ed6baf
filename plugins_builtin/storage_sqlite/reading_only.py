"""Finds a way to read a file that may not be written, which leaves no trace beside it. Opens no connection.

SQLite reads a file in WAL mode through two more files. If both lie there, they are used as they are. If neither holds
anything, the file alone is read without any lock, so afterwards it has to be looked whether somebody changed it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from plugins_builtin.storage_sqlite.faults import Faults
from plugins_builtin.storage_sqlite.files import has_journal

_WITH_JOURNAL = "mode=ro&readonly_shm=1"
_ALONE = "mode=ro&immutable=1"


@attrs.frozen(kw_only=True)
class Way:
    """How to read a file.

    Attributes:
        switches: What SQLite is told in the name of the file.
        verify: Called after reading; raises a `StorageError` when what was read cannot be relied upon.
    """

    switches: str
    verify: Callable[[], None]


def may_be_written(path: Path) -> bool:
    """Whether the file may be written, and others may be made beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def way_to_read(path: Path, faults: Faults) -> Way:
    """Returns how a file can be read that may not be written.

    Raises:
        StorageReadOnlyError: A part of it is in a journal that cannot be read without writing.
        StorageError: It cannot be reached.
    """
    journal, index, old_journal = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))
    if _holds_something(old_journal):
        raise faults.unread(old_journal)
    if journal.exists() and index.exists():
        return Way(switches=_WITH_JOURNAL, verify=lambda: None)
    if _holds_something(journal):
        raise faults.unread(journal)
    before = _state(path, faults)

    def verify() -> None:
        if _state(path, faults) != before or has_journal(path):
            raise faults.changed()

    return Way(switches=_ALONE, verify=verify)


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _state(path: Path, faults: Faults) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise faults.of_file(error) from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
