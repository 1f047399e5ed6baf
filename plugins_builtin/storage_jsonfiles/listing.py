"""Finds the keys of the documents in the folders of a store, in key order. Reads no document.

A folder is listed only when the walk comes to it, so a page costs the folders that it touches.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

import attrs

from plugin_sdk.storage import InvalidKeyError, Key, encode_key
from plugins_builtin.storage_jsonfiles.failures import misplaced
from plugins_builtin.storage_jsonfiles.files import Files, Names
from plugins_builtin.storage_jsonfiles.names import SUFFIX, is_continued, part_of, path_of_key, path_of_prefix, table_in

_LONGEST_KEY = 1_000


@attrs.frozen
class Found:
    """A file or a folder that stands for one more part of a key."""

    encoded: bytes
    names: Names
    is_folder: bool


def tables(files: Files) -> list[str]:
    """Returns the names of the tables that have a folder, sorted.

    Raises:
        StorageError: The root cannot be read.
    """
    names = (table_in(name) for name, kind in files.listed(()) if stat.S_ISDIR(kind))
    return sorted(name for name in names if name is not None)


def keys(
    files: Files,
    table: str,
    prefix: Key = (),
    *,
    after: bytes | None = None,
    reverse: bool = False,
    known: dict[Names, list[Found]] | None = None,
) -> Iterator[tuple[bytes, Names]]:
    """Yields the encoded keys that begin with the prefix, each with the path of its file.

    Args:
        files: Where to look.
        table: The table.
        prefix: The first parts of the keys.
        after: Begins behind this encoded key, in the direction of the walk.
        reverse: From the last to the first.
        known: What earlier walks found in folders that have not changed since; gets what this one finds.

    Raises:
        StorageDamagedError: Something in the way is a link, or no folder.
        StorageError: A folder cannot be read.
    """
    walk = _Walk(files, after, reverse, {} if known is None else known)
    own = _own(files, table, prefix)
    below = walk.below(path_of_prefix(table, prefix), encode_key(prefix) if prefix else b"")
    for group in (below, own) if reverse else (own, below):
        yield from (pair for pair in group if walk.is_wanted(pair[0]))


@attrs.frozen
class _Walk:
    files: Files
    after: bytes | None
    reverse: bool
    known: dict[Names, list[Found]]

    def is_wanted(self, encoded: bytes) -> bool:
        if self.after is None:
            return True
        return encoded < self.after if self.reverse else encoded > self.after

    def below(self, folder: Names, encoded: bytes) -> Iterator[tuple[bytes, Names]]:
        # Not one call for each folder, because a key may have more parts than calls can nest.
        begun = [self._inside(folder, encoded)]
        while begun:
            entry = next(begun[-1], None)
            if entry is None:
                begun.pop()
            elif not entry.is_folder:
                yield entry.encoded, entry.names
            elif self._may_hold(entry.encoded):
                begun.append(self._inside(entry.names, entry.encoded))

    def _inside(self, folder: Names, encoded: bytes) -> Iterator[Found]:
        found = self._found(folder)
        for entry in reversed(found) if self.reverse else found:
            whole = encoded + entry.encoded
            if len(whole) <= _LONGEST_KEY:
                yield Found(whole, folder + entry.names, entry.is_folder)

    def _found(self, folder: Names) -> list[Found]:
        found = self.known.get(folder)
        if found is None:
            found = sorted(_found(self.files, folder, ()), key=lambda entry: (entry.encoded, entry.is_folder))
            self.known[folder] = found
        return found

    def _may_hold(self, encoded: bytes) -> bool:
        if self.after is None:
            return True
        return encoded < self.after if self.reverse else encoded + b"\xff" > self.after


def _own(files: Files, table: str, prefix: Key) -> Iterator[tuple[bytes, Names]]:
    if prefix:
        path = path_of_key(table, prefix)
        if files.has(path):
            yield encode_key(prefix), path


def _found(files: Files, folder: Names, begun: Names) -> Iterator[Found]:
    for name, kind in files.listed(folder + begun):
        if stat.S_ISDIR(kind) and is_continued(name):
            yield from _found(files, folder, (*begun, name))
            continue
        is_folder = stat.S_ISDIR(kind) or (stat.S_ISLNK(kind) and not name.endswith(SUFFIX))
        if not is_folder and not name.endswith(SUFFIX):
            continue
        stem = name if is_folder else name[: -len(SUFFIX)]
        encoded = _encoded((*begun, stem), is_folder=is_folder)
        if encoded is None:
            continue
        if kind not in (stat.S_IFDIR, stat.S_IFREG):
            raise misplaced(files.shown((*folder, *begun, name)))
        yield Found(encoded, (*begun, name), is_folder)


def _encoded(names: Names, *, is_folder: bool) -> bytes | None:
    part = part_of(names, folder=is_folder)
    try:
        return None if part is None else encode_key((part,))
    except InvalidKeyError:
        return None
