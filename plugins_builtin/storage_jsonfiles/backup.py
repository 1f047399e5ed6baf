"""Copies a store's folder beside it before it is migrated. Changes no document.

The books name the copy until the migration is done, so one that is begun again has its copy from before the first time.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from plugins_builtin.storage_jsonfiles.failures import translated
from plugins_builtin.storage_jsonfiles.files import BOOKS

_NOTE = "migrating"


def back_up(root: Path, version: int) -> Path:
    """Returns where the copy is, which is complete and on the disk; that of an unfinished migration if there is one.

    Raises:
        StorageFullError: There is no space for it.
        StorageError: It cannot be made.
    """
    earlier = _of_unfinished_migration(root)
    if earlier is not None:
        return earlier
    unfinished = root.with_name(f"{root.name}.backup-unfinished")
    with translated(str(unfinished)):
        shutil.rmtree(unfinished, ignore_errors=True)  # what a process that was killed left
        shutil.copytree(root, unfinished, symlinks=True, ignore=_without_books(root))
        os.sync()  # one call instead of one for each file
        backup = _free_name(root, version)
        os.rename(unfinished, backup)
        (root / BOOKS / _NOTE).write_text(backup.name, encoding="utf-8")
    return backup


def forget_backup(root: Path) -> None:
    """Notes that the migration is done; the copy stays.

    Raises:
        StorageError: That cannot be noted.
    """
    with translated(str(root)):
        (root / BOOKS / _NOTE).unlink(missing_ok=True)


def _of_unfinished_migration(root: Path) -> Path | None:
    with translated(str(root)):
        try:
            name = (root / BOOKS / _NOTE).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        is_ours = name.startswith(f"{root.name}.backup-v") and "/" not in name
        return root.with_name(name) if is_ours and root.with_name(name).is_dir() else None


def _without_books(root: Path) -> Callable[[str, list[str]], list[str]]:
    def ignored(folder: str, names: list[str]) -> list[str]:
        return [BOOKS] if folder == str(root) and BOOKS in names else []

    return ignored


def _free_name(root: Path, version: int) -> Path:
    for number in itertools.count(1):
        ending = f"-{number}" if number > 1 else ""
        path = root.with_name(f"{root.name}.backup-v{version}{ending}")
        if not os.path.lexists(path):
            return path
    raise AssertionError("there is always another number")
