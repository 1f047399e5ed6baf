"""Looks at the file from outside, and makes a new one all at once. Changes none that is there."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

import attrs

from plugin_sdk.storage import StorageForeignError, StorageVersionError
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.connecting import connect
from plugins_builtin.storage_sqlite.faults import Faults
from plugins_builtin.storage_sqlite.held import kept_closed
from plugins_builtin.storage_sqlite.schema import APPLICATION_ID, Layout

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_UNLINKABLE = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EMLINK, errno.EXDEV}


def look(path: Path, faults: Faults, *, layout: Layout, migrate: bool) -> bool:
    """Returns whether there is a store, which then seems to be one that can be opened.

    Only the header is read, since SQLite would leave traces beside a file that it opens. When a journal lies there
    the header may be out of date; then what it says of the version is not believed, and SQLite is asked later. Nothing
    is read of a file that this process has open already.

    Raises:
        StorageForeignError: It is something else.
        StorageVersionError: It is of a newer layout, or of an older one and should not be migrated.
        StorageDamagedError: It is cut short.
        StorageError: It cannot be read.
    """
    try:
        with kept_closed(path) as may_be_opened:
            return not may_be_opened or _looks_right(path, faults, layout=layout, migrate=migrate)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.EACCES:
            raise faults.unavailable("it may not be read") from error
        raise faults.of_file(error) from error


def check_version(found: int, path: Path, *, layout: Layout, migrate: bool) -> None:
    """Refuses a layout that cannot be opened.

    Raises:
        StorageVersionError: It is newer, or older and should not be migrated.
    """
    known = layout.version
    if found > known:
        raise StorageVersionError(
            f"The store '{path}' has the layout {found}, but the newest one known here is {known}.",
            "Install a newer version of the program.",
            found=found,
            known=known,
        )
    if found < known and not migrate:
        raise StorageVersionError(
            f"The store '{path}' has the layout {found}, and {known} is needed.",
            "Run 'opencode-core storage migrate'.",
            found=found,
            known=known,
        )


def has_journal(path: Path) -> bool:
    """Whether something lies beside the file that belongs into it."""
    return any(_size(path.with_name(path.name + suffix)) > 0 for suffix in ("-wal", "-journal"))


def create(path: Path, faults: Faults, *, layout: Layout) -> None:
    """Makes a store, unless another process was faster. Nobody ever sees half of it.

    Raises:
        StorageError: It cannot be made.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        _make_folders(path.parent)
        try:
            _draw_up(draft, layout)
            with suppress(FileExistsError):
                _publish(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise faults.of_file(error) from error
    except sqlite3.Error as error:
        raise faults.of(error) from error


def sync_file(path: Path) -> None:
    """Returns when a file is on the disk.

    Raises:
        OSError: It cannot be written.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Returns when the names in a folder are on the disk, where the system can promise that."""
    with suppress(OSError):  # not every system lets a folder be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_private(path: Path) -> None:
    """Makes an empty file that nobody else may read.

    Raises:
        OSError: It is there already, or cannot be made.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@attrs.frozen(kw_only=True)
class _Header:
    application: int
    version: int
    is_cut_short: bool


def _looks_right(path: Path, faults: Faults, *, layout: Layout, migrate: bool) -> bool:
    header = _read_header(path, faults)
    if header.application != APPLICATION_ID:
        raise _foreign(path, "an SQLite database of another program")
    if not has_journal(path):
        check_version(header.version, path, layout=layout, migrate=migrate)
        if header.is_cut_short and _read_header(path, faults) == header and not has_journal(path):
            raise faults.damaged("its end is missing")
    return True


def _read_header(path: Path, faults: Faults) -> _Header:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise _foreign(path, "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe")
    with path.open("rb") as file:
        header = file.read(_HEADER)
        size = os.fstat(file.fileno()).st_size
    if not header:
        raise _foreign(path, "an empty file")
    if header[: len(_MAGIC)] != _MAGIC:
        raise _foreign(path, "a file of another kind")
    if len(header) < _HEADER:
        raise faults.damaged("its end is missing")
    page, pages = _number(header[16:18]), _number(header[28:32])
    return _Header(
        application=_number(header[68:72]),
        version=_number(header[60:64]),
        is_cut_short=size < pages * (65_536 if page == 1 else page),
    )


def _number(digits: bytes) -> int:
    return int.from_bytes(digits, "big")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _foreign(path: Path, what: str) -> StorageForeignError:
    return StorageForeignError(
        f"'{path}' is no SQLite store but {what}; it was left as it is.", "Name another path in the storage URL."
    )


def _make_folders(folder: Path) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _draw_up(draft: Path, layout: Layout) -> None:
    make_private(draft)
    # Nobody else knows the draft, so it needs no journal, and reaches the disk once, at the end.
    connection = connect(draft, seconds=0, pragmas=("PRAGMA journal_mode = MEMORY", "PRAGMA synchronous = OFF"))
    try:
        connection.execute(queries.BEGIN_ALONE)
        layout.build(connection)
        connection.execute(queries.COMMIT)
    finally:
        connection.close()
    sync_file(draft)


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        # No hard links here: write it in one go, which still never replaces a file.
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(draft.read_bytes())
            file.flush()
            os.fsync(file.fileno())
