"""Copies everything from one store into an empty one, and proves that it arrived. Changes nothing in the source.

The target says from the first write to the last that it is unfinished, so nobody takes half a copy for a whole one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from opencode_core.errors import StorageDamagedError, StorageError
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from opencode_core.storage.pages import LARGEST, Cursor, Entry, Page, tables_of
from opencode_core.storage.schema import COPY_KEY, version_in
from opencode_core.storage.tables import STORE

Stage: TypeAlias = Literal["counting", "copying", "verifying"]


@attrs.frozen
class Progress:
    """How far a copy is: so many documents of how many in this stage; None while that is being counted."""

    stage: Stage
    done: int
    total: int | None


@attrs.frozen(kw_only=True)
class Copied:
    """What was copied and found to be the same."""

    tables: int
    documents: int


Report: TypeAlias = Callable[[Progress], object]


async def copy(source: Storage, target: Storage, *, source_name: str = "", report: Report = lambda _: None) -> Copied:
    """Copies everything, then reads both stores again side by side and compares.

    A target that an earlier copy left unfinished is emptied first.

    Args:
        source: What to copy; nobody may write to it meanwhile.
        target: Where to; as its backend opened it.
        source_name: What the target says it is a copy of while it is unfinished; without any secret.
        report: Told how far it is.

    Raises:
        StorageVersionError: The source is newer than what is known here.
        StorageForeignError: The source belongs to another program.
        StorageDamagedError: The source is an unfinished copy itself, or the copy is not the same.
        StorageError: The target is not empty, or is the source; the source changed; or one of them failed.
    """
    await _refuse_itself(source, target)
    await source.view(version_in)
    await _begin(target, source_name)
    total = await _count(source, report)
    digest = await _copy(source, target, Counter(report, "copying", total))
    copied = await _verify(source, target, digest, Counter(report, "verifying", total))
    await target.transact(lambda rows: rows.delete(STORE, COPY_KEY))
    return copied


@attrs.define(eq=False)
class Counter:
    """Counts the documents of a stage, and reports them."""

    _report: Report
    _stage: Stage
    _total: int | None
    done: int = attrs.field(init=False, default=0)

    def add(self, count: int) -> None:
        """Notes that so many more are done."""
        self.done += count
        self._report(Progress(self._stage, self.done, self._total))


async def _refuse_itself(source: Storage, target: Storage) -> None:
    one, other = await source.facts(), await target.facts()
    # A place that is nothing but the scheme tells no two stores apart.
    is_same_place = one.place != f"{one.kind}:" and _real(one.place) == _real(other.place)
    if source is target or (one.kind == other.kind and is_same_place):
        raise StorageError(f"The store '{one.place}' cannot be copied onto itself.", "Name another target.")


def _real(place: str) -> str:
    return os.path.realpath(place) if os.path.isabs(place) else place


async def _begin(target: Storage, source_name: str) -> None:
    place = (await target.facts()).place

    def mark(rows: Transaction) -> None:
        if rows.tables() and rows.get(STORE, COPY_KEY) is None:
            raise StorageError(
                f"The store '{place}' is not empty.", "Name a target that does not exist yet, or an empty one."
            )
        rows.put(STORE, COPY_KEY, {"from": source_name})

    await target.transact(mark)
    for table in await tables_of(target):
        while await target.transact(_emptier(table)):
            pass


def _emptier(table: str) -> Callable[[Transaction], bool]:
    def empty(rows: Transaction) -> bool:
        keys = [key for key, _ in rows.scan(table, limit=LARGEST) if not _is_marker(table, key)]
        for key in keys:
            rows.delete(table, key)
        return bool(keys)

    return empty


async def _count(source: Storage, report: Report) -> int:
    counter = Counter(report, "counting", None)
    for table in await tables_of(source):
        after: Key | None = None
        while True:
            count, after = await source.view(_counter(table, after))
            counter.add(count)
            if after is None:
                break
    return counter.done


def _counter(table: str, after: Key | None) -> Callable[[ReadTransaction], tuple[int, Key | None]]:
    def count(rows: ReadTransaction) -> tuple[int, Key | None]:
        keys = [key for key, _ in rows.scan(table, after=after, limit=LARGEST)]
        return len(keys), keys[-1] if len(keys) == LARGEST else None

    return count


async def _copy(source: Storage, target: Storage, counter: Counter) -> bytes:
    digest = hashlib.sha256()
    for table in await tables_of(source):
        cursor = Cursor(source, table)
        while page := await cursor.page():
            await target.transact(_putter(table, page))
            for entry in page:
                digest.update(_fingerprint(table, entry))
            counter.add(len(page))
    return digest.digest()


def _putter(table: str, page: Page) -> Callable[[Transaction], None]:
    def put(rows: Transaction) -> None:
        for entry in page:
            rows.put(table, entry.key, entry.document)

    return put


async def _verify(source: Storage, target: Storage, digest: bytes, counter: Counter) -> Copied:
    again = hashlib.sha256()
    different: tuple[str, Key] | None = None
    tables = await tables_of(source)
    for table in sorted({*tables, *await tables_of(target)}):
        original, copied = Cursor(source, table), Cursor(target, table)
        while (entry := await original.next()) is not None:
            again.update(_fingerprint(table, entry))
            if await _next_copied(copied, table) != entry:
                different = different or (table, entry.key)
            counter.add(1)
        extra = await _next_copied(copied, table)
        if extra is not None:
            different = different or (table, extra.key)
    if again.digest() != digest:
        raise StorageError(
            f"The store '{(await source.facts()).place}' changed while it was copied.",
            "Stop what writes to it, and run the copy again.",
        )
    if different is not None:
        table, key = different
        raise StorageDamagedError(
            f"The copy is not the same as its source: the tables '{table}' differ at {key!r}.",
            "Run the copy again; if it fails again, run 'opencode-core storage check' on both.",
        )
    return Copied(tables=len(tables), documents=counter.done)


async def _next_copied(cursor: Cursor, table: str) -> Entry | None:
    entry = await cursor.next()
    return await cursor.next() if entry is not None and _is_marker(table, entry.key) else entry


def _is_marker(table: str, key: Key) -> bool:
    return table == STORE and key == COPY_KEY


def _fingerprint(table: str, entry: Entry) -> bytes:
    return f"{table}\0{entry.key!r}\0{entry.text}\0".encode("utf-8", "surrogatepass")
