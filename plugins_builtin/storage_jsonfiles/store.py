"""An open store in JSON files, as the port wants it. Opens none, and leaves reading and writing to its threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio.lowlevel
import attrs

from plugin_sdk.storage import (
    Errand,
    EventLoop,
    Key,
    Outcome,
    ReadTransaction,
    StorageClosedError,
    StorageFacts,
    Transaction,
    Wakes,
)
from plugins_builtin.storage_jsonfiles.access import Access
from plugins_builtin.storage_jsonfiles.checking import size_of, what_is_wrong
from plugins_builtin.storage_jsonfiles.jobs import Crew
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.transactions import Snapshot
from plugins_builtin.storage_jsonfiles.watching import Watch
from plugins_builtin.storage_jsonfiles.writer import Order, Writer

R = TypeVar("R")

_MOST_READERS = 4


@attrs.define(eq=False, repr=False)
class JsonFiles:
    """A `Storage`, whose facts are those known at its opening."""

    _access: Access
    _facts: StorageFacts
    _loop: EventLoop = attrs.field(init=False, factory=EventLoop)
    _wakes: Wakes = attrs.field(init=False, factory=Wakes)
    _watch: Watch = attrs.field(init=False)
    _writer: Writer = attrs.field(init=False)
    _readers: Crew[_Reading] = attrs.field(init=False)
    _closing: Errand[None] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._watch = Watch(self._access, self._loop, self._wakes)
        self._writer = Writer(self._access, self._loop, self._wakes, self._watch)
        self._readers = Crew("jsonfiles reader", _MOST_READERS, self._read, self._deliver)

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """Runs work atomically and serialisably, and returns when the result is durable."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        self._refuse_when_closed()
        outcome: Outcome[R] = Outcome()
        self._writer.submit(Order(work, outcome))
        return await outcome.wait()

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """Runs work on one consistent snapshot, read-only."""

        def read(ledger: Ledger, outcome: Outcome[R]) -> None:
            with ledger.reading() as overlay:
                if outcome.begin():
                    snapshot = Snapshot(ledger.files, overlay)
                    try:
                        outcome.succeed(work(snapshot))
                    finally:
                        snapshot.end()

        return await self._run(read)

    @asynccontextmanager
    async def changes(self, table: str, prefix: Key = ()) -> AsyncIterator[AsyncIterator[None]]:
        """Wakes when something below the prefix may have changed, in this process or another."""
        async with self._wakes.waiting(table, prefix) as wakes:
            self._watch.enter()
            try:
                yield wakes
            finally:
                self._watch.leave()

    async def check(self) -> Sequence[str]:
        """Looks at every file and returns what is wrong, one sentence each. Repairs nothing."""

        def read(ledger: Ledger, outcome: Outcome[list[str]]) -> None:
            with ledger.locks.shared():
                if outcome.begin():
                    outcome.succeed(what_is_wrong(ledger))

        return await self._run(read)

    async def facts(self) -> StorageFacts:
        """Tells where the store is and how large."""

        def read(ledger: Ledger, outcome: Outcome[int]) -> None:
            with ledger.locks.shared():
                if outcome.begin():
                    outcome.succeed(size_of(ledger.files))

        size = await self._run(read)
        return attrs.evolve(self._facts, bytes=size)

    async def aclose(self) -> None:
        """Closes the store; twice is harmless."""
        if self._closing is None:
            self._wakes.close()
            self._closing = Errand(self._finish, self._loop)
        await self._closing.wait()

    async def _run(self, read: Callable[[Ledger, Outcome[R]], None]) -> R:
        await anyio.lowlevel.checkpoint_if_cancelled()
        self._refuse_when_closed()
        outcome: Outcome[R] = Outcome()
        self._readers.submit(_Reading(read, outcome))
        return await outcome.wait()

    def _read(self, readings: list[_Reading]) -> None:
        for reading in readings:
            try:
                self._access.read(partial(reading.read, outcome=reading.outcome))
            except BaseException as error:
                reading.outcome.fail(error)

    def _deliver(self, readings: list[_Reading]) -> None:
        self._loop.deliver(reading.outcome for reading in readings)

    def _refuse_when_closed(self) -> None:
        if self._closing is not None:
            raise StorageClosedError

    def _finish(self) -> None:
        self._watch.finish()
        self._writer.finish()
        self._readers.finish()
        self._access.close()


@attrs.frozen(eq=False)
class _Reading:
    read: Callable[..., None]
    outcome: Outcome[Any]
