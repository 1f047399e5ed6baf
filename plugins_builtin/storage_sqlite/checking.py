"""Looks at every document in the file, and says what is wrong. Repairs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from plugin_sdk.storage import InvalidKeyError, StorageDamagedError, check_table, decode_document, decode_key
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.transactions import Reading

R = TypeVar("R")

SLICE = 500
"""Documents that one view looks at, so that nothing is held up for long."""

Place: TypeAlias = tuple[str, bytes]


class View(Protocol):
    """Runs work on a snapshot."""

    async def __call__(self, work: Callable[[Reading], R]) -> R:
        """See `Storage.view`."""
        ...


async def check(view: View) -> list[str]:
    """Returns what is wrong with the file and its documents, one sentence each.

    Raises:
        StorageError: It cannot be read, for another reason than damage.
    """
    problems: list[str] = []
    try:
        problems += await view(_faults_of_the_file)
        last: Place | None = ("", b"")
        while last is not None:
            last = await view(_slice_behind(last, problems))
    except StorageDamagedError as error:  # the rest cannot be reached
        problems.append(error.problem)
    return problems


def _faults_of_the_file(reading: Reading) -> list[str]:
    found = [what for (what,) in reading.rows(queries.INTEGRITY)]
    return [f"SQLite says: {what}." for what in found if what != "ok"]


def _slice_behind(last: Place, problems: list[str]) -> Callable[[Reading], Place | None]:
    def look(reading: Reading) -> Place | None:
        rows = reading.rows(queries.SLICE, (*last, SLICE))
        problems.extend(problem for row in rows for problem in _faults_of_a_document(*row))
        return rows[-1][:2] if len(rows) == SLICE else None

    return look


def _faults_of_a_document(collection: str, key: bytes, body: str) -> list[str]:
    try:
        check_table(collection)
        name = repr(decode_key(key))
    except (InvalidKeyError, TypeError, ValueError):
        return [f"In the table {collection!r} the key {key!r} cannot be read."]
    try:
        if decode_document(body) is None:
            return [f"In the table '{collection}' the document of {name} is null."]
    except (StorageDamagedError, TypeError):
        return [f"In the table '{collection}' the document of {name} is not JSON."]
    return []
