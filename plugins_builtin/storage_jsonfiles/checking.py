"""Looks at everything in a store's folder and says what is wrong. Repairs nothing, takes no lock."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from plugin_sdk.storage import StorageError
from plugins_builtin.storage_jsonfiles.files import BOOKS, Files, Names
from plugins_builtin.storage_jsonfiles.inspection import version_in
from plugins_builtin.storage_jsonfiles.journal import START
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.names import SUFFIX, VERSION_FILE, is_continued, part_of, table_in
from plugins_builtin.storage_jsonfiles.text import TooDeepError, from_bytes

_OURS = frozenset({"journal", "applied", "lock", "gate", "users", "new", "migrating"})


def what_is_wrong(ledger: Ledger) -> list[str]:
    """Returns one sentence for each thing that is wrong."""
    return [*_in_the_books(ledger), *_in_the_root(ledger.files)]


def size_of(files: Files) -> int:
    """Returns how many bytes everything in a store's folder has.

    Raises:
        StorageError: A folder cannot be read.
    """
    total, folders = 0, [Names()]
    while folders:
        folder = folders.pop()
        size, inner = files.weighed(folder)
        total += size
        folders += [(*folder, name) for name in inner]
    return total


def _in_the_books(ledger: Ledger) -> Iterator[str]:
    try:
        if ledger.journal.run():
            _, end = ledger.journal.read(START)
            if end < ledger.journal.size():
                yield f"The journal '{ledger.journal.place}' ends in a torn record."
        note = ledger.mark.read()
        if note is None or note.applied != ledger.journal.size():
            yield f"The journal '{ledger.journal.place}' has a transaction that is not in the files yet."
    except (StorageError, OSError) as error:
        yield f"The journal cannot be read: {error}"
    for name, _ in ledger.files.listed((BOOKS,)):
        if name not in _OURS:
            yield f"'{ledger.files.shown((BOOKS, name))}' does not belong to the store."


def _in_the_root(files: Files) -> Iterator[str]:
    try:
        version_in(files.root)
    except StorageError as error:
        yield str(error)
    for name, kind in sorted(files.listed(())):
        if name in (BOOKS, VERSION_FILE):
            continue
        if stat.S_ISDIR(kind) and table_in(name) is not None:
            yield from _in_table(files, name)
        else:
            yield _out_of_place(files, (name,), kind)


def _in_table(files: Files, name: str) -> Iterator[str]:
    # Not one call for each folder, because a key may have more parts than calls can nest.
    folders: list[tuple[Names, Names]] = [((name,), ())]
    while folders:
        folder, begun = folders.pop()
        inner: list[tuple[Names, Names]] = []
        for name, kind in sorted(files.listed(folder + begun)):
            names = (*begun, name)
            if stat.S_ISDIR(kind) and is_continued(name):
                inner.append((folder, names))
            elif stat.S_ISDIR(kind) and part_of(names, folder=True) is not None:
                inner.append((folder + names, ()))
            elif stat.S_ISREG(kind) and _names_a_document(names):
                yield from _in_file(files, folder + names)
            else:
                yield _out_of_place(files, folder + names, kind)
        folders += reversed(inner)


def _out_of_place(files: Files, path: Names, kind: int) -> str:
    if stat.S_ISLNK(kind):
        return f"'{files.shown(path)}' is a symbolic link, which is not followed."
    return f"'{files.shown(path)}' does not belong to the store."


def _names_a_document(names: Names) -> bool:
    *more, last = names
    return last.endswith(SUFFIX) and part_of((*more, last[: -len(SUFFIX)]), folder=False) is not None


def _in_file(files: Files, path: Names) -> Iterator[str]:
    try:
        content = files.read(path)
        if content is not None and from_bytes(content) is None:
            yield f"The file '{files.shown(path)}' holds null, which is no document."
    except TooDeepError:
        yield f"The file '{files.shown(path)}' is nested too deeply to be read."
    except ValueError:
        yield f"The file '{files.shown(path)}' is not JSON."
    except StorageError as error:
        yield str(error)
