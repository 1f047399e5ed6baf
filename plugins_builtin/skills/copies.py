"""Keeps copies of remote skills on disk, each of them complete or not there. Fetches nothing. Everything here blocks.

Each skill has a folder of its name, with its files and a mark that says which version they are. A new version is
written beside it and takes its place by renaming, so whoever looks finds the old files or the new ones, also when
another process does the same. A folder whose name begins with a dot is on its way in or out.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import attrs

from plugins_builtin.skills.index import MARK, Listed

ABANDONED = 3_600.0
"""After how many seconds a folder that is on its way belongs to nobody any more."""

LOOKS = 3
"""How often is looked when something is replaced meanwhile."""

_CHECKED = ".checked"
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


@attrs.frozen(kw_only=True)
class Copy:
    """A complete copy of a skill.

    Attributes:
        listed: What the index said of it.
        path: Where it is: not in the folder of its name when a process died while it replaced it.
        fetched: When, in seconds.
    """

    listed: Listed
    path: Path
    fetched: float


def find_copies(root: Path) -> dict[str, Copy]:
    """Returns every complete copy, by name in order; of one that is just being replaced, the old one."""
    found: dict[str, Copy] = {}
    is_torn, looks = True, 0
    while is_torn and looks < LOOKS:
        found, is_torn = _look(root)
        looks += 1
    return dict(sorted(found.items()))


def install(root: Path, listed: Listed, contents: Mapping[str, bytes], fetched: float) -> None:
    """Puts a skill in place of the copy that is there, if there is one.

    Raises:
        OSError: It could not be written; the old copy is as it was.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = uuid4().hex
    staged, old, target = root / f".{listed.name}.new-{token}", root / f".{listed.name}.old-{token}", root / listed.name
    try:
        _write(staged, listed, contents, fetched)
        _swap(staged, target, old)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def remove(root: Path, name: str) -> None:
    """Takes a copy away.

    Raises:
        OSError: It could not be.
    """
    gone = root / f".{name}.gone-{uuid4().hex}"
    with suppress(FileNotFoundError):
        os.rename(root / name, gone)
    shutil.rmtree(gone, ignore_errors=True)


def tidy(root: Path, now: float) -> None:
    """Removes what processes that died left behind, but for what is the only copy of a skill."""
    for folder in _folders(root):
        name, _, way = folder.name.removeprefix(".").rpartition(".")
        is_only_one = way.startswith("old-") and not (root / name).exists()
        with suppress(OSError):
            is_on_its_way = folder.name.startswith(".") and folder.is_dir() and not is_only_one
            if is_on_its_way and now - folder.stat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def read_checked(root: Path) -> float | None:
    """Returns when the index was last seen and followed, in seconds; None when that is not known."""
    try:
        return float((root / _CHECKED).read_text("ascii"))
    except (OSError, ValueError):
        return None


def write_checked(root: Path, now: float) -> None:
    """Remembers when the index was seen and followed.

    Raises:
        OSError: It could not be written.
    """
    staged = root / f"{_CHECKED}-{uuid4().hex}"
    try:
        staged.write_text(repr(now), "ascii")
        os.replace(staged, root / _CHECKED)
    finally:
        staged.unlink(missing_ok=True)


def _look(root: Path) -> tuple[dict[str, Copy], bool]:
    """Returns the copies that are there, and whether a folder lost its mark after it was listed, as if replaced."""
    found: dict[str, Copy] = {}
    is_torn = False
    for folder in _folders(root):
        try:
            copy = _copy(folder)
        except FileNotFoundError:
            is_torn = is_torn or not folder.name.startswith(".")
            continue
        if copy is not None and folder.name in (copy.listed.name, _old(copy.listed.name, folder)):
            found[copy.listed.name] = copy
    return found, is_torn


def _folders(root: Path) -> list[Path]:
    """Returns what is in there: first what is on its way, so that what has arrived has priority."""
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _old(name: str, folder: Path) -> str:
    return folder.name if folder.name.startswith(f".{name}.old-") else name


def _copy(folder: Path) -> Copy | None:
    try:
        mark = json.loads((folder / MARK).read_bytes())
        listed = Listed(name=mark["name"], files=tuple(mark["files"]), version=mark["version"])
        fetched = float(mark["fetched"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_complete = all((folder / each).is_file() for each in listed.files)
    return Copy(listed=listed, path=folder, fetched=fetched) if is_complete else None


def _write(folder: Path, listed: Listed, contents: Mapping[str, bytes], fetched: float) -> None:
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (folder / MARK).write_text(json.dumps({**attrs.asdict(listed), "fetched": fetched}), "utf-8")


def _swap(staged: Path, target: Path, old: Path) -> None:
    had_one = True
    try:
        os.rename(target, old)
    except FileNotFoundError:
        had_one = False
    try:
        os.rename(staged, target)
    except OSError as error:
        if error.errno in _TAKEN:  # somebody else has just put a copy there, which is as good
            return
        if had_one:
            os.rename(old, target)
        raise
