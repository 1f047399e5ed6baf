"""Says in the store's own errors what SQLite or the file system complained about. Retries nothing."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import attrs

from plugin_sdk.storage import (
    StorageBusyError,
    StorageDamagedError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
    StorageUnavailableError,
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_FILE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOLFS}
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_PERMISSION = {errno.EROFS, errno.EACCES, errno.EPERM}
_LEAST_FREE = 64 * 1024
"""With less, one more page and its index do not fit, whatever SQLite calls that."""


@attrs.frozen(kw_only=True)
class Faults:
    """The errors of one store.

    Attributes:
        path: The file.
        seconds: How long a lock is waited for.
    """

    path: Path
    seconds: float

    def of(self, error: sqlite3.Error) -> StorageError:
        """Returns what an error of SQLite means for the caller."""
        primary = code_of(error)
        if primary == sqlite3.SQLITE_FULL:
            return self.full()
        if primary in _BUSY:
            return self.busy()
        if primary in _DAMAGED:
            return self.damaged(str(error))
        if primary in _READ_ONLY:
            return self.read_only()
        if primary in _FILE:
            return self._file_fault(error)
        return StorageError(f"The store '{self.path}' failed: {error}.", "Run 'opencode-core storage check'.")

    def of_file(self, error: OSError) -> StorageError:
        """Returns what an error of the file system means for the caller."""
        if error.errno in _NO_SPACE:
            return self.full()
        if error.errno in _NO_PERMISSION:
            return self.read_only()
        return self.unavailable(error.strerror or type(error).__name__)

    def full(self) -> StorageFullError:
        """There is no space left."""
        return StorageFullError(
            f"There is no space left for the store '{self.path}'; nothing was written.", "Free some space, and repeat."
        )

    def busy(self) -> StorageBusyError:
        """Another process held the lock for too long."""
        return StorageBusyError(
            f"Another process held the store '{self.path}' for more than {self.seconds:g} seconds; "
            "nothing was written.",
            "Repeat it, or wait longer with '?timeout=SECONDS' in the storage URL.",
        )

    def damaged(self, what: str) -> StorageDamagedError:
        """The file is broken."""
        return StorageDamagedError(
            f"The store '{self.path}' is damaged: {what}.",
            "Move the file away and restore a backup; without one, '.recover' in the 'sqlite3' program may save what "
            "can still be read.",
        )

    def read_only(self) -> StorageReadOnlyError:
        """The file or its folder may not be written."""
        return StorageReadOnlyError(
            f"The store '{self.path}' may not be written.",
            "Make the file and its folder writable: SQLite keeps its journal beside the file.",
        )

    def unavailable(self, what: str) -> StorageUnavailableError:
        """The file cannot be reached."""
        return StorageUnavailableError(
            f"The store '{self.path}' cannot be reached: {what}.", "Look at the path and the disk, and repeat."
        )

    def uncertain(self, cause: Exception) -> StorageUnavailableError:
        """A commit failed in such a way that it may still come true."""
        return StorageUnavailableError(
            f"The store '{self.path}' failed during a commit: {_named(cause)}; whether it was written is unknown.",
            "Look at the disk and open the store again; then look whether it is there, and repeat it if not.",
            outcome_unknown=True,
        )

    def unread(self, journal: Path) -> StorageReadOnlyError:
        """A part of the store is where it cannot be read without writing."""
        return StorageReadOnlyError(
            f"The store '{self.path}' may not be written, and cannot be read without that: "
            f"a part of it is still in '{journal.name}'.",
            "Make the file and its folder writable, or copy both files to a folder that is, and open it there.",
        )

    def changed(self) -> StorageUnavailableError:
        """Somebody else wrote to a file that may only be read here, and cannot be locked."""
        return StorageUnavailableError(
            f"Another process changed the store '{self.path}', which is open for reading only.", "Open it again."
        )

    def _file_fault(self, error: sqlite3.Error) -> StorageError:
        # SQLite does not pass on why the file system refused, so look.
        if not os.access(self.path.parent, os.W_OK | os.X_OK) or not _writable_or_missing(self.path):
            return self.read_only()
        with suppress(OSError):
            if shutil.disk_usage(self.path.parent).free < _LEAST_FREE:
                return self.full()
        return self.unavailable(_named(error))


def leaves_doubt(error: Exception) -> bool:
    """Whether a commit that failed so may have reached the disk: not when it was refused, or did not fit."""
    return not isinstance(error, sqlite3.Error) or code_of(error) not in {sqlite3.SQLITE_FULL, *_BUSY}


def code_of(error: sqlite3.Error) -> int:
    """Returns SQLite's primary code, or 0 when the error came from Python's own side."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds what is needed, so that waiting may help."""
    return code_of(error) in _BUSY


def _named(error: Exception) -> str:
    return f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"


def _writable_or_missing(path: Path) -> bool:
    return os.access(path, os.W_OK) or not path.exists()
