"""Keeps everything in this process's memory, for tests and for trying things out. Keeps nothing when it is closed.

Documents are held as text, so nobody can change what is stored by changing what they wrote or read. Work runs in the
event loop, one at a time and without a pause, so each sees the result of whole transactions only.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import TypeVar

import anyio
import anyio.lowlevel
import attrs

from plugin_sdk import PluginManifest, hookimpl
from plugin_sdk.storage import (
    JSON,
    Key,
    ReadTransaction,
    Storage,
    StorageClosedError,
    StorageFactory,
    StorageFacts,
    StorageMissingError,
    StorageUrlError,
    Transaction,
    TransactionEndedError,
    Wakes,
    check_table,
    decode_document,
    decode_key,
    encode_document,
    encode_key,
    key_range,
    shown,
)

R = TypeVar("R")

opencode_plugin = PluginManifest(description="Keeps sessions in memory, until the store is closed.")


@hookimpl
def opencode_storage_backends() -> dict[str, StorageFactory]:
    """Offers ``memory:``."""
    return {"memory": open_store}


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens a new, empty store; there is never an older one, so none that needs a migration.

    Raises:
        StorageUrlError: The URL is not ``memory:``.
        StorageMissingError: None should be made.
    """
    if url != "memory:":
        raise StorageUrlError(f"The storage URL '{shown(url)}' names something in memory.", "Write 'memory:' alone.")
    if not create:
        raise StorageMissingError("A store in memory is always a new one.", "Let it be created, or name another store.")
    return MemoryStorage()


@attrs.define(eq=False, repr=False)
class MemoryStorage:
    """An open store in memory. Its laws are those of `plugin_sdk.storage.Storage`."""

    _tables: dict[str, _Table] = attrs.field(init=False, factory=dict)
    _wakes: Wakes = attrs.field(init=False, factory=Wakes)
    _closed: bool = attrs.field(init=False, default=False)
    _calls: int = attrs.field(init=False, default=0)
    _idle: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """Runs work; what it wrote is undone if it raises."""
        return await self._in_turn(lambda: self._committed(work))

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """Runs work, read-only."""
        return await self._in_turn(lambda: self._viewed(work))

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Wakes at each commit below the prefix."""
        return self._wakes.waiting(table, prefix)

    async def check(self) -> list[str]:
        """Finds nothing: what this module keeps is nobody else's to damage."""
        return await self._in_turn(list)

    async def facts(self) -> StorageFacts:
        """Tells the size of the documents and their keys."""
        size = await self._in_turn(lambda: sum(table.size() for table in self._tables.values()))
        return StorageFacts(kind="memory", place="memory:", schema=1, bytes=size)

    async def aclose(self) -> None:
        """Lets the calls that were made finish, then forgets everything."""
        self._closed = True
        self._wakes.close()
        if self._calls:
            await self._idle.wait()
        self._tables.clear()

    async def _in_turn(self, call: Callable[[], R]) -> R:
        if self._closed:
            raise StorageClosedError
        self._calls += 1
        try:
            # A cancellation is noticed here. Behind it nothing waits, so what has begun also finishes.
            await anyio.lowlevel.checkpoint()
            return call()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._calls -= 1
        if self._closed and not self._calls:
            self._idle.set()

    def _committed(self, work: Callable[[Transaction], R]) -> R:
        transaction = _Transaction(self._tables)
        try:
            result = work(transaction)
        except BaseException:
            transaction.undo()
            raise
        finally:
            transaction.end()
        self._wakes.wake((table, decode_key(key)) for table, key in transaction.before)
        return result

    def _viewed(self, work: Callable[[ReadTransaction], R]) -> R:
        view = _View(self._tables)
        try:
            return work(view)
        finally:
            view.end()


@attrs.define(eq=False, repr=False)
class _View:
    _tables: dict[str, _Table]
    _ended: bool = attrs.field(init=False, default=False)

    def get(self, table: str, key: Key) -> JSON:
        text = self._table(table).texts.get(encode_key(key))
        return None if text is None else decode_document(text)

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        found = self._table(table)
        low, high = key_range(prefix)
        if after is not None:
            behind = encode_key(after)
            # No key lies between another and the same with a zero byte behind it.
            low, high = (low, min(high, behind)) if reverse else (max(low, behind + b"\0"), high)
        if limit is not None and limit < 0:
            raise ValueError(f"A limit of {limit} is negative.")
        # Taken now: what this transaction writes while it reads on is not part of it.
        texts = [(key, found.texts[key]) for key in islice(found.keys.between(low, high, reverse=reverse), limit)]
        return ((decode_key(key), decode_document(text)) for key, text in texts)

    def tables(self) -> list[str]:
        self._check_not_ended()
        return sorted(name for name, table in self._tables.items() if table.texts)

    def end(self) -> None:
        self._ended = True

    def _table(self, name: str) -> _Table:
        self._check_not_ended()
        return self._tables.get(check_table(name)) or _Table()

    def _check_not_ended(self) -> None:
        if self._ended:
            raise TransactionEndedError


@attrs.define(eq=False, repr=False)
class _Transaction(_View):
    """Writes at once, because nobody looks meanwhile, and remembers what was there before."""

    before: dict[tuple[str, bytes], str | None] = attrs.field(init=False, factory=dict)

    def put(self, table: str, key: Key, document: JSON) -> None:
        self._check_not_ended()
        self._write(check_table(table), encode_key(key), encode_document(document))

    def delete(self, table: str, key: Key) -> None:
        self._check_not_ended()
        self._write(check_table(table), encode_key(key), None)

    def undo(self) -> None:
        for (name, key), text in self.before.items():
            self._tables[name].set(key, text)

    def _write(self, name: str, key: bytes, text: str | None) -> None:
        table = self._tables.setdefault(name, _Table())
        self.before.setdefault((name, key), table.texts.get(key))
        table.set(key, text)


@attrs.define(eq=False, repr=False)
class _Table:
    texts: dict[bytes, str] = attrs.field(init=False, factory=dict)
    keys: _SortedKeys = attrs.field(init=False, factory=lambda: _SortedKeys())

    def set(self, key: bytes, text: str | None) -> None:
        """Puts a text under a key, or removes the one that is there."""
        if text is None:
            if self.texts.pop(key, None) is not None:
                self.keys.remove(key)
            return
        if key not in self.texts:
            self.keys.add(key)
        self.texts[key] = text

    def size(self) -> int:
        return sum(sys.getsizeof(key) + sys.getsizeof(text) for key, text in self.texts.items())


@attrs.define(eq=False, repr=False)
class _SortedKeys:
    """Keys in order, in short runs, so that adding and removing hardly costs more when there are many."""

    _runs: list[list[bytes]] = attrs.field(init=False, factory=list)
    _lasts: list[bytes] = attrs.field(init=False, factory=list)

    def add(self, key: bytes) -> None:
        """Adds a key that is not there."""
        at = min(bisect_left(self._lasts, key), len(self._lasts) - 1)
        if at < 0:
            self._runs.append([key])
            self._lasts.append(key)
            return
        run = self._runs[at]
        insort(run, key)
        if len(run) > _LONGEST_RUN:
            half = len(run) // 2
            self._runs.insert(at + 1, run[half:])
            self._lasts.insert(at + 1, run[-1])
            del run[half:]
        self._lasts[at] = run[-1]

    def remove(self, key: bytes) -> None:
        """Removes a key that is there."""
        at = bisect_left(self._lasts, key)
        run = self._runs[at]
        del run[bisect_left(run, key)]
        if run:
            self._lasts[at] = run[-1]
        else:
            del self._runs[at], self._lasts[at]

    def between(self, low: bytes, high: bytes, *, reverse: bool) -> Iterator[bytes]:
        """Yields the keys that are at least low and less than high."""
        if low >= high:
            return
        first, last = bisect_left(self._lasts, low), bisect_left(self._lasts, high)
        numbers = range(first, min(last + 1, len(self._runs)))
        for number in reversed(numbers) if reverse else numbers:
            run = self._runs[number]
            part = run[bisect_left(run, low) : bisect_left(run, high)]
            yield from reversed(part) if reverse else part


_LONGEST_RUN = 1_000
