"""Looks at everything in a store's folder and says what is wrong. Repairs nothing, takes no lock."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from plugin_sdk.storage import StorageError
from plugins_builtin.storage_jsonfiles.changes import VERSION_FILE
from plugins_builtin.storage_jsonfiles.files import BOOKS, Files, Names
from plugins_builtin.storage_jsonfiles.inspection import version_in
from plugins_builtin.storage_jsonfiles.journal import START
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.listing import is_table
from plugins_builtin.storage_jsonfiles.names import SUFFIX, is_continued, part_of
from plugins_builtin.storage_jsonfiles.text import from_bytes

_OURS = frozenset({"journal", "applied", "lock", "gate", "users", "new"})


def what_is_wrong(ledger: Ledger) -> list[str]:
    """Returns one sentence for each thing that is wrong."""
    return [*_in_the_books(ledger), *_in_the_root(ledger.files)]


def size_of(root: Path) -> int:
    """Returns how many bytes the files below a folder have."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # a temporary file
                continue
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
        if stat.S_ISDIR(kind) and is_table(name):
            yield from _in_folder(files, (name,), ())
        elif stat.S_ISLNK(kind):
            yield f"'{files.shown((name,))}' is a symbolic link, which is not followed."
        else:
            yield f"'{files.shown((name,))}' does not belong to the store."


def _in_folder(files: Files, folder: Names, begun: Names) -> Iterator[str]:
    for name, kind in sorted(files.listed(folder + begun)):
        path = (*folder, *begun, name)
        if stat.S_ISLNK(kind):
            yield f"'{files.shown(path)}' is a symbolic link, which is not followed."
        elif stat.S_ISDIR(kind) and is_continued(name):
            yield from _in_folder(files, folder, (*begun, name))
        elif stat.S_ISDIR(kind) and part_of((*begun, name), folder=True) is not None:
            yield from _in_folder(files, path, ())
        elif stat.S_ISREG(kind) and _names_a_document((*begun, name)):
            yield from _in_file(files, path)
        else:
            yield f"'{files.shown(path)}' does not belong to the store."


def _names_a_document(names: Names) -> bool:
    *more, last = names
    return last.endswith(SUFFIX) and part_of((*more, last[: -len(SUFFIX)]), folder=False) is not None


def _in_file(files: Files, path: Names) -> Iterator[str]:
    try:
        content = files.read(path)
        if content is not None and from_bytes(content) is None:
            yield f"The file '{files.shown(path)}' holds null, which is no document."
    except ValueError:
        yield f"The file '{files.shown(path)}' is not JSON."
    except StorageError as error:
        yield str(error)
