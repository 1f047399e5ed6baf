"""Opens the folder in which a store keeps its journal and its locks, and makes it where it is missing.

The folder's name begins with a dot, so the first generation never looks into it. Decides nothing about the store.

A ledger whose store has no such folder is bare: its locks and its journal are in a private place, and keep nobody out.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from plugins_builtin.storage_jsonfiles.failures import READ_ONLY, translated
from plugins_builtin.storage_jsonfiles.files import BOOKS, Files
from plugins_builtin.storage_jsonfiles.journal import Journal
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.locks import Locks
from plugins_builtin.storage_jsonfiles.mark import Mark

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_ledger(root: Path, *, timeout: float, make: bool = True) -> Ledger:
    """Returns the ledger of the store in a folder, settled and announced to other processes.

    Args:
        root: The folder.
        timeout: How many seconds to wait for others.
        make: Whether books are made where there are none; else, and where that is impossible, the ledger is bare.

    Raises:
        StorageBusyError: Somebody else held the store for too long.
        StorageError: The folder cannot be read, or what is in the journal cannot be applied.
    """
    with ExitStack() as undo:
        with translated(str(root)):
            ledger = _ledger(root, timeout, undo, make=make)
        ledger.locks.enroll()
        ledger.recover()
        undo.pop_all()
    return ledger


def has_books(root: Path) -> bool:
    """Whether somebody made books for the store in a folder."""
    return os.path.lexists(root / BOOKS)


def _ledger(root: Path, timeout: float, undo: ExitStack, *, make: bool) -> Ledger:
    cleanup = ExitStack()
    files = Files(root)
    undo.callback(files.close)
    with translated(files.shown((BOOKS,))):
        try:
            books, is_bare = _for_writing(root, cleanup, undo, make=make)
            journal, mark = _pair(books, os.O_RDWR | os.O_CREAT, undo)
            is_writable = not is_bare
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise
            books, is_bare = _for_reading(root, cleanup, undo)
            journal, mark = _pair(books, os.O_RDWR | os.O_CREAT if is_bare else os.O_RDONLY, undo)
            is_writable = False
    locks = Locks(str(root), timeout, books)
    undo.callback(locks.close)
    return Ledger(
        files=files,
        journal=Journal(files.shown((BOOKS, "journal")), journal),
        mark=Mark(mark),
        locks=locks,
        is_writable=is_writable,
        is_bare=is_bare,
        cleanup=cleanup,
    )


def _for_writing(root: Path, cleanup: ExitStack, undo: ExitStack, *, make: bool) -> tuple[int, bool]:
    if make:
        with suppress(FileExistsError):
            os.mkdir(root / BOOKS, 0o700)
    try:
        return os.open(root / BOOKS, _FOLDER), False
    except FileNotFoundError:
        if make:
            raise
        return _private(cleanup, undo), True


def _pair(books: int, flags: int, undo: ExitStack) -> tuple[int, int]:
    descriptors = []
    try:
        for name in ("journal", "applied"):
            flags |= os.O_NOFOLLOW | os.O_CLOEXEC
            descriptors.append(os.open(name, flags, 0o600, dir_fd=books))
    except OSError:
        for descriptor in (*descriptors, books):
            os.close(descriptor)
        raise
    for descriptor in descriptors:
        undo.callback(os.close, descriptor)
    return descriptors[0], descriptors[1]


def _for_reading(root: Path, cleanup: ExitStack, undo: ExitStack) -> tuple[int, bool]:
    with suppress(FileNotFoundError):
        return os.open(root / BOOKS, _FOLDER), False
    return _private(cleanup, undo), True


def _private(cleanup: ExitStack, undo: ExitStack) -> int:
    # Nobody ever wrote here with a journal, so there is nothing to keep apart until somebody begins to.
    private = cleanup.enter_context(tempfile.TemporaryDirectory(prefix=f"{BOOKS}-"))
    undo.callback(cleanup.close)
    return os.open(private, _FOLDER)
