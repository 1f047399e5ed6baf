"""Says what is in a folder: no store, a store in some version, or something else. Changes nothing."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import attrs

from plugin_sdk.storage import StorageDamagedError, StorageForeignError, StorageVersionError
from plugins_builtin.storage_jsonfiles.failures import misplaced, translated
from plugins_builtin.storage_jsonfiles.files import BOOKS
from plugins_builtin.storage_jsonfiles.names import VERSION_FILE

CURRENT = 2

OLD_SESSIONS = Path("storage", "session", "info")
"""Where the oldest layout had its sessions, below the folder of each project."""

_V1_FOLDERS = frozenset(
    {"message", "part", "permission", "project", "session", "session_diff", "session_share", "share", "todo"}
)
_LITTER = frozenset({".DS_Store", BOOKS})
_NUMBER = re.compile(rb'\s*"?(\d{1,9})"?\s*')


@attrs.frozen(kw_only=True)
class Found:
    """What is in a folder.

    Attributes:
        version: The version of the store's layout; None when there is no store, but room for one.
        has_documents: Whether there is anything that a migration could spoil.
    """

    version: int | None
    has_documents: bool


def inspect(root: Path) -> Found:
    """Returns what is in a folder, which need not exist.

    Raises:
        StorageForeignError: There is something other than a store.
        StorageVersionError: The store is newer than what is known here.
        StorageDamagedError: The store says no version.
        StorageError: The folder cannot be read.
    """
    with translated(str(root)):
        try:
            names = set(os.listdir(root))
        except FileNotFoundError:
            names = set()
        except NotADirectoryError:
            raise _foreign(root) from None
        visible = names - _LITTER
        if VERSION_FILE in names:
            return Found(version=version_in(root), has_documents=len(visible) > 1)
        if visible:
            _refuse_strange(root, visible)
            return Found(version=0, has_documents=True)
        return Found(version=0 if old_projects(root) else None, has_documents=False)


def version_in(root: Path) -> int:
    """Returns the version that a store says it has.

    Raises:
        StorageForeignError: What should hold the number is a folder, so this is something else.
        StorageVersionError: It is newer than what is known here.
        StorageDamagedError: It is missing, or not a number.
    """
    path = root / VERSION_FILE
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            raise _foreign(root)
        if not stat.S_ISREG(mode):
            raise misplaced(str(path))
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    number = _NUMBER.fullmatch(content)
    if number is None:
        raise StorageDamagedError(
            f"The file '{path}' does not hold the number of a layout.",
            f"Restore it from a backup; the number today is {CURRENT}.",
        )
    if int(number[1]) > CURRENT:
        raise StorageVersionError(
            f"The store '{root}' has layout {int(number[1])}, and the newest one known here is {CURRENT}.",
            "Use a newer program.",
            found=int(number[1]),
            known=CURRENT,
        )
    return int(number[1])


def old_projects(root: Path) -> list[Path]:
    """Returns the folders of projects that the oldest layout kept beside the store, sorted."""
    try:
        folders = sorted((root.parent / "project").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder for folder in folders if (folder / OLD_SESSIONS).is_dir()]


def _refuse_strange(root: Path, visible: set[str]) -> None:
    if not visible <= _V1_FOLDERS:
        raise _foreign(root)
    for name in sorted(visible):
        if not stat.S_ISDIR(os.lstat(root / name).st_mode):
            raise _foreign(root)
        for _, _, files in os.walk(root / name):
            if not all(file.endswith(".json") or file.startswith(".") for file in files):
                raise _foreign(root)


def _foreign(root: Path) -> StorageForeignError:
    return StorageForeignError(
        f"'{root}' holds something other than a store of JSON files.", "Name an empty folder, or the one you meant."
    )
