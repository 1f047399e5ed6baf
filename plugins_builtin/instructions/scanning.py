"""Finds the instruction files in the folders of a project. Opens no file, and follows no link on its way down.

The folders form a tree, which is walked from the root by descriptors: the cost is that of the folders, however deep
they are, while each path anew would cost the square of the depth.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence

import attrs

from plugins_builtin.instructions.problems import MISSING, Problem, lasting, passing

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The names of instruction files; the second counts only where the first is not."""

_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd

_ITS_OWN = (errno.ELOOP, errno.ENAMETOOLONG)  # what is wrong with a name itself rather than with its folder


@attrs.frozen
class Found:
    """Something with the name of an instruction file.

    Attributes:
        path: Where it is.
        status: What it was when it was found.
        is_canonical: Whether nothing on the way to it is a link, so that at most it is one itself.
    """

    path: str
    status: os.stat_result
    is_canonical: bool = False


@attrs.frozen(kw_only=True)
class Scanned:
    """What was found: from the root down to the directory, then in other folders, each before those in it."""

    found: tuple[Found, ...] = ()
    problems: tuple[Problem, ...] = ()


def scan(root: str, directory: str, visited: Iterable[str], *, by_descriptor: bool = _BY_DESCRIPTOR) -> Scanned:
    """Looks into every folder from the root down to the directory, and down to each visited folder.

    Args:
        root: The project's root, canonical.
        directory: The working directory, canonical; nothing is scanned when it is not below the root.
        visited: Other folders, canonical; what is not below the root is ignored.
        by_descriptor: Whether folders are entered, rather than looked into by their path.

    Raises:
        PassingError: A folder down to the directory cannot be looked into.
    """
    if names_below(root, directory) is None:
        return Scanned()
    scanning = _Scanning(by_descriptor)
    scanning.run(_tree(root, directory, visited))
    scanning.found.sort(key=lambda each: (not each[0], each[1].path.split(os.sep)))
    return Scanned(found=tuple(found for _, found in scanning.found), problems=tuple(scanning.problems))


def first_of(
    names: Sequence[str], place: Callable[[str], str], *, dir_fd: int | None = None, is_upward: bool = False
) -> Found | Problem | None:
    """Returns the first of some names that is in a folder; None when none is.

    Args:
        names: The names, the one that counts most first.
        place: Returns the path of a name in that folder.
        dir_fd: The folder itself, open, with nothing but canonical folders above it; None to look by the path.
        is_upward: Whether the folder leads to the working directory, so that it has to be known what is in it.

    Raises:
        PassingError: It cannot be told now.
    """
    for name in names:
        try:
            status = os.stat(place(name)) if dir_fd is None else os.stat(name, dir_fd=dir_fd)
        except OSError as error:
            if error.errno not in MISSING:
                return _problem(place(name), error, is_upward)
        else:
            return Found(place(name), status, dir_fd is not None)
    return None


def names_below(root: str, path: str) -> tuple[str, ...] | None:
    """Returns the names that lead from a folder down to a path; None when it is not below it."""
    if path == root:
        return ()
    prefix = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(prefix):
        return None
    return tuple(path[len(prefix) :].split(os.sep))


@attrs.define(eq=False)
class _Folder:
    """A folder by its name; its path is only made when it is needed, because a deep one is long."""

    name: str
    above: _Folder | None
    is_upward: bool
    inner: dict[str, _Folder] = attrs.field(factory=dict)

    @property
    def path(self) -> str:
        names = [self.name]
        folder = self
        while folder.above is not None:
            folder = folder.above
            names.append(folder.name)
        return os.path.join(*reversed(names))

    def place(self, name: str) -> str:
        return os.path.join(self.path, name)


def _tree(root: str, directory: str, visited: Iterable[str]) -> _Folder:
    top = _Folder(root, None, True)
    for path, is_upward in ((directory, True), *((each, False) for each in visited)):
        folder = top
        for name in names_below(root, path) or ():
            inner = folder.inner.get(name)
            if inner is None:
                inner = folder.inner[name] = _Folder(name, folder, is_upward)
            folder = inner
    return top


@attrs.define(eq=False)
class _Level:
    """A folder on the way down, open while some of its folders are still to be looked into."""

    descriptor: int | None
    left: list[_Folder]

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


@attrs.define(eq=False)
class _Scanning:
    by_descriptor: bool
    found: list[tuple[bool, Found]] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)

    def run(self, top: _Folder) -> None:
        levels: list[_Level] = [_Level(None, [top])]
        try:
            while levels:
                level = levels[-1]
                folder = level.left.pop()
                try:
                    inner = self._enter(folder, level)
                finally:
                    if not level.left:  # closed as soon as can be: of a chain, however long, one is open
                        levels.pop().close()
                if inner is not None:
                    self._push(levels, folder, inner)
        finally:
            for level in levels:
                level.close()

    def _push(self, levels: list[_Level], folder: _Folder, inner: _Level) -> None:
        levels.append(inner)
        try:
            self._look_into(folder, inner.descriptor)
        finally:
            if not inner.left:
                levels.pop().close()

    def _enter(self, folder: _Folder, level: _Level) -> _Level | None:
        """Opens a folder; None when one of those that were only visited is not there, or may not be opened."""
        left = list(folder.inner.values())
        try:
            if not self.by_descriptor:
                os.stat(folder.place(""))
                return _Level(None, left)
            return _Level(os.open(folder.name, _ENTER, dir_fd=level.descriptor), left)
        except OSError as error:
            if folder.is_upward:
                raise passing(folder.path, error) from None
            if error.errno not in MISSING:
                self.problems.append(_problem(folder.path, error, False))
            return None

    def _look_into(self, folder: _Folder, descriptor: int | None) -> None:
        seen = first_of(NAMES, folder.place, dir_fd=descriptor, is_upward=folder.is_upward)
        if isinstance(seen, Problem):
            self.problems.append(seen)
        elif seen is not None:
            self.found.append((folder.is_upward, seen))


def _problem(path: str, error: OSError, is_upward: bool) -> Problem:
    """Returns what a person has to mend.

    Raises:
        PassingError: It may pass, or it hides whether there are instructions on the way to the directory.
    """
    problem = lasting(path, error)
    if problem is None or (is_upward and error.errno not in _ITS_OWN):
        raise passing(path, error) from None
    return problem
