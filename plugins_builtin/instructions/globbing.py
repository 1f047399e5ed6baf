"""Finds the files that a pattern names, in order and within bounds. Follows no link to a folder, and opens no file.

``*``, ``?`` and ``[...]`` stand for characters of one name, ``**`` for any folders in between. What begins with a dot
is only found by a pattern that says so. What may not be looked into is left out with a problem to tell; what cannot be
just now makes all of it unknown, because nothing is gone only because a disk does not answer.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from plugins_builtin.instructions.problems import MISSING, Problem, lasting, passing

MATCHES = 100
"""How many files one pattern may name."""

ENTRIES = 50_000
"""How many names are looked at for one pattern."""

PROBLEMS = 10
"""How many problems of one pattern are told."""

T = TypeVar("T")

_WILD = re.compile(r"[*?\[]")


@attrs.frozen(kw_only=True)
class Matches:
    """The files that a pattern names, sorted.

    Attributes:
        paths: Their paths.
        is_complete: Whether that is all of them.
        problems: What could not be looked into.
    """

    paths: tuple[str, ...]
    is_complete: bool = True
    problems: tuple[Problem, ...] = ()


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

    Raises:
        PassingError: It cannot be told now.
    """
    drive, rest = os.path.splitdrive(pattern)
    names = [each for each in rest.split(os.sep) if each not in ("", ".")]
    base = drive + os.sep if os.path.isabs(pattern) else folder
    expanding = _Expanding(_steps(names), entries)
    found = sorted(expanding.run(base), key=lambda path: path.split(os.sep))
    is_complete = expanding.left >= 0 and len(found) <= matches
    return Matches(paths=tuple(found[:matches]), is_complete=is_complete, problems=tuple(expanding.problems))


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
    problems: list[Problem] = attrs.field(init=False, factory=list)
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
            named = [each for each in self._entries(folder) if not each.name.startswith(".")]
            inner = [each.path for each in named if self._is_folder(each)]
            self._todo += [(path, at) for path in reversed(inner)]
            self._todo.append((folder, at + 1))
        elif not is_pattern(step):
            path = os.path.join(folder, step)
            if not is_last:
                self._todo.append((path, at + 1))
            elif self._known(path, lambda: stat.S_ISREG(os.stat(path).st_mode), False):
                yield path
        else:
            matching = [each for each in self._entries(folder) if _matches(each.name, step)]
            if is_last:
                yield from (each.path for each in matching if self._is_file(each))
            else:
                self._todo += [(each.path, at + 1) for each in reversed(matching) if self._is_folder(each)]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        nothing: list[os.DirEntry[str]] = []
        return sorted(self._known(folder, lambda: self._listed(folder), nothing), key=lambda each: each.name)

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        with os.scandir(folder) as listed:
            for each in listed:
                self.left -= 1
                if self.left < 0:
                    break
                entries.append(each)
        return entries

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        return self._known(entry.path, lambda: entry.is_dir(follow_symlinks=False), False)

    def _is_file(self, entry: os.DirEntry[str]) -> bool:
        return self._known(entry.path, entry.is_file, False)

    def _known(self, path: str, ask: Callable[[], T], nothing: T) -> T:
        """Returns what the system says of a path, or nothing when it is not there or may not be looked at.

        Raises:
            PassingError: It cannot be told now.
        """
        try:
            return ask()
        except OSError as error:
            if error.errno in MISSING:
                return nothing
            problem = lasting(path, error)
            if problem is None:
                raise passing(path, error) from None
            if len(self.problems) < PROBLEMS:
                self.problems.append(problem)
            return nothing


def _matches(name: str, step: str) -> bool:
    return fnmatch.fnmatchcase(name, step) and (step.startswith(".") or not name.startswith("."))
