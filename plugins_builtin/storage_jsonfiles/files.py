"""Reads and writes the files of a store, by their names from its root. Follows no symbolic link, takes no lock."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import attrs

from plugins_builtin.storage_jsonfiles.durable import sync_all_around
from plugins_builtin.storage_jsonfiles.failures import MISPLACED, misplaced, storage_error

Names: TypeAlias = tuple[str, ...]

BOOKS = ".opencode-core"
_TEMPORARY = "new"
_MANY = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EBUSY})


@attrs.define(eq=False, repr=False)
class Files:
    """The folder of a store, held open so that nobody can put another in its place."""

    root: Path
    _descriptor: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Lets the folder go; once."""
        os.close(self._descriptor)

    def shown(self, names: Names) -> str:
        """Returns a path for people."""
        return str(self.root.joinpath(*names))

    def read(self, names: Names) -> bytes | None:
        """Returns the content of a file, or None.

        Raises:
            StorageDamagedError: There is something other than a file, or a link on the way.
            StorageError: It cannot be read.
        """
        with self._reported(names):
            try:
                with self._folder(names[:-1]) as folder:
                    descriptor = os.open(names[-1], _READ, dir_fd=folder)
            except FileNotFoundError:
                return None
            with open(descriptor, "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise misplaced(self.shown(names))
                return file.readall()

    def has(self, names: Names) -> bool:
        """Whether there is a file.

        Raises:
            StorageDamagedError: There is something other than a file, or a link on the way.
            StorageError: That cannot be found out.
        """
        with self._reported(names), suppress(FileNotFoundError), self._folder(names[:-1]) as folder:
            if not stat.S_ISREG(os.stat(names[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise misplaced(self.shown(names))
            return True
        return False

    def written_at(self, names: Names) -> int | None:
        """Returns when a file was written, in nanoseconds, or None when there is none.

        Raises:
            StorageError: That cannot be found out.
        """
        with self._reported(names), suppress(FileNotFoundError), self._folder(names[:-1]) as folder:
            return os.stat(names[-1], dir_fd=folder, follow_symlinks=False).st_mtime_ns
        return None

    def write(self, names: Names, content: bytes) -> None:
        """Puts a file in the place of the one that is there, at once. Only one may write at a time.

        Raises:
            StorageError: It cannot be written; the one that was there still is.
        """
        with self._reported(names), self._folder((BOOKS,)) as books, self._folder(names[:-1], make=True) as folder:
            with open(os.open(_TEMPORARY, _WRITE, 0o600, dir_fd=books), "wb", buffering=0) as file:
                write_all(file.fileno(), content)
            os.rename(_TEMPORARY, names[-1], src_dir_fd=books, dst_dir_fd=folder)

    def remove(self, names: Names) -> None:
        """Removes a file, and the folders that have nothing in them then; a missing one is fine.

        Raises:
            StorageError: It cannot be removed.
        """
        with self._reported(names), suppress(FileNotFoundError):
            with self._folder(names[:-1]) as folder:
                os.unlink(names[-1], dir_fd=folder)
            for depth in range(len(names) - 1, 1, -1):
                try:
                    with self._folder(names[: depth - 1]) as parent:
                        os.rmdir(names[depth - 1], dir_fd=parent)
                except OSError as error:
                    if error.errno in _NOT_EMPTY:
                        return
                    raise

    def sync(self, paths: Iterable[Names]) -> None:
        """Returns when these files, and the folders on the way to them, are on the disk.

        Raises:
            StorageError: They are not.
        """
        paths = list(paths)
        with self._reported(()):
            if len(paths) > _MANY and sync_all_around(self._descriptor):
                return
        folders: set[Names] = set()
        for names in paths:
            folders.update(names[:depth] for depth in range(len(names)))
            with self._reported(names), suppress(FileNotFoundError), self._folder(names[:-1]) as folder:
                _sync(os.open(names[-1], _READ, dir_fd=folder))
        for names in sorted(folders, key=len, reverse=True):
            with self._reported(names), suppress(FileNotFoundError), self._folder(names) as folder:
                os.fsync(folder)

    def listed(self, names: Names) -> list[tuple[str, int]]:
        """Returns the names in a folder with their kinds, such as ``stat.S_IFREG``; none when it is missing.

        Raises:
            StorageError: It is not a folder, or cannot be read.
        """
        with self._reported(names), suppress(FileNotFoundError), self._folder(names) as at, os.scandir(at) as entries:
            return [(entry.name, _kind(entry)) for entry in entries]
        return []

    def weighed(self, names: Names) -> tuple[int, list[str]]:
        """Returns how many bytes the files in a folder have, and the names of the folders in it.

        Raises:
            StorageError: It is not a folder, or cannot be read.
        """
        total, folders = 0, []
        with self._reported(names), suppress(FileNotFoundError), self._folder(names) as at, os.scandir(at) as entries:
            for entry in entries:
                if _kind(entry) == stat.S_IFDIR:
                    folders.append(entry.name)
                    continue
                with suppress(FileNotFoundError):  # a temporary file
                    total += entry.stat(follow_symlinks=False).st_size
        return total, folders

    @contextmanager
    def _folder(self, names: Names, *, make: bool = False) -> Iterator[int]:
        descriptor = os.dup(self._descriptor)
        try:
            for name in names:
                inner = _inner(name, descriptor, make=make)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _reported(self, names: Names) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in MISPLACED:
                raise misplaced(self.shown(names)) from error
            raise storage_error(error, self.shown(names)) from error


def write_all(descriptor: int, content: bytes, *, at: int | None = None) -> None:
    """Writes every byte.

    Raises:
        OSError: Not every byte could be written.
    """
    rest = memoryview(content)
    while rest:
        written = os.write(descriptor, rest) if at is None else os.pwrite(descriptor, rest, at)
        rest = rest[written:]
        at = None if at is None else at + written


def _inner(name: str, folder: int, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
