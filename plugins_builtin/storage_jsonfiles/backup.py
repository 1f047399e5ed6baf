"""Copies a store's folder beside it before it is migrated. Changes nothing in the store."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from plugins_builtin.storage_jsonfiles.failures import translated
from plugins_builtin.storage_jsonfiles.files import BOOKS


def back_up(root: Path, version: int) -> Path:
    """Returns where the copy is, which is complete and on the disk.

    Raises:
        StorageFullError: There is no space for it.
        StorageError: It cannot be made.
    """
    unfinished = root.with_name(f"{root.name}.backup-unfinished")
    with translated(str(unfinished)):
        shutil.rmtree(unfinished, ignore_errors=True)  # what a process that was killed left
        shutil.copytree(root, unfinished, symlinks=True, ignore=_without_books(root))
        os.sync()  # one call instead of one for each file
        backup = _free_name(root, version)
        os.rename(unfinished, backup)
    return backup


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
