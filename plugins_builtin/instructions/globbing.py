"""Finds the files that a pattern names, in order and within bounds. Follows no link to a folder, and opens no file.

``*``, ``?`` and ``[...]`` stand for characters of one name, ``**`` for any folders in between. What begins with a dot
is only found by a pattern that says so.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator

import attrs

MATCHES = 100
"""How many files one pattern may name."""

ENTRIES = 50_000
"""How many names are looked at for one pattern."""

_WILD = re.compile(r"[*?\[]")


@attrs.frozen(kw_only=True)
class Matches:
    """The files that a pattern names, sorted.

    Attributes:
        paths: Their paths.
        is_complete: Whether that is all of them.
    """

    paths: tuple[str, ...]
    is_complete: bool = True


def is_pattern(text: str) -> bool:
    """Whether a path stands for others."""
    return _WILD.search(text) is not None


def expand(pattern: str, folder: str, *, matches: int = MATCHES, entries: int = ENTRIES) -> Matches:
    """Returns the files that a pattern names, relative to a folder unless it is absolute.

    Args:
        pattern: The pattern.
        folder: The folder.
        matches: How many files it may name.
        entries: How many names are looked at.
    """
    drive, rest = os.path.splitdrive(pattern)
    names = [each for each in rest.split(os.sep) if each not in ("", ".")]
    base = drive + os.sep if os.path.isabs(pattern) else folder
    expanding = _Expanding(_steps(names), entries)
    found = sorted(expanding.run(base), key=lambda path: path.split(os.sep))
    is_complete = expanding.left >= 0 and len(found) <= matches
    return Matches(paths=tuple(found[:matches]), is_complete=is_complete)


def _steps(names: list[str]) -> tuple[str, ...]:
    steps: list[str] = []
    for name in names:
        if name != "**" or steps[-1:] != ["**"]:
            steps.append(name)
    return (*steps, "*") if steps[-1:] == ["**"] else tuple(steps)


@attrs.define(eq=False)
class _Expanding:
    """Walks down depth first without recursion, because folders may be deeper than Python's stack."""

    _steps: tuple[str, ...]
    left: int
    _todo: list[tuple[str, int]] = attrs.field(init=False, factory=list)
    _seen: set[tuple[str, int]] = attrs.field(init=False, factory=set)

    def run(self, base: str) -> set[str]:
        found: set[str] = set()
        self._todo.append((base, 0))
        while self._todo and self.left >= 0:
            task = self._todo.pop()
            if task not in self._seen:
                self._seen.add(task)
                found.update(self._step(*task))
        return found

    def _step(self, folder: str, at: int) -> Iterator[str]:
        step, is_last = self._steps[at], at == len(self._steps) - 1
        if step == "**":
            inner = [each.path for each in self._entries(folder) if _is_folder(each) and not each.name.startswith(".")]
            self._todo += [(path, at) for path in reversed(inner)]
            self._todo.append((folder, at + 1))
        elif not is_pattern(step):
            path = os.path.join(folder, step)
            if not is_last:
                self._todo.append((path, at + 1))
            elif os.path.isfile(path):
                yield path
        else:
            matching = [each for each in self._entries(folder) if _matches(each.name, step)]
            if is_last:
                yield from (each.path for each in matching if _is_file(each))
            else:
                self._todo += [(each.path, at + 1) for each in reversed(matching) if _is_folder(each)]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as listed:
                for each in listed:
                    self.left -= 1
                    if self.left < 0:
                        break
                    entries.append(each)
        except (OSError, ValueError):  # gone, or not to be looked into: there is nothing that it could name
            return []
        return sorted(entries, key=lambda each: each.name)


def _matches(name: str, step: str) -> bool:
    return fnmatch.fnmatchcase(name, step) and (step.startswith(".") or not name.startswith("."))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
