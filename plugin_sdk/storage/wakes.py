"""Wakes whoever waits for changes below a prefix, in this process. Knows no store."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import attrs

from opencode_core.errors import StorageClosedError
from opencode_core.model.storage import Key
from plugin_sdk.storage.keys import check_table, key_range

__all__ = ["Wakes"]


@attrs.define(eq=False, repr=False)
class Wakes:
    """Everybody in this event loop who waits for changes. Not for other threads: go through `EventLoop.soon`."""

    _waiting: dict[str, dict[int, _Waiter]] = attrs.field(init=False, factory=dict)
    _numbers: itertools.count[int] = attrs.field(init=False, factory=itertools.count)
    _closed: bool = attrs.field(init=False, default=False)

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody waits at all."""
        return any(self._waiting.values())

    @asynccontextmanager
    async def waiting(self, table: str, prefix: Key = ()) -> AsyncIterator[AsyncIterator[None]]:
        """Registers at once, and yields an iterator that wakes.

        Raises:
            StorageClosedError: It is closed; also from the iterator.
            InvalidKeyError: The table or the prefix is wrong.
        """
        check_table(table)
        key_range(prefix)
        if self._closed:
            raise StorageClosedError
        waiter, number = _Waiter(prefix), next(self._numbers)
        self._waiting.setdefault(table, {})[number] = waiter
        try:
            yield waiter
        finally:
            waiters = self._waiting.get(table, {})
            waiters.pop(number, None)
            if not waiters:
                self._waiting.pop(table, None)

    def wake(self, written: Iterable[tuple[str, Key]]) -> None:
        """Wakes those who wait for one of these documents."""
        if not self._waiting:
            return
        for table, key in written:
            for waiter in self._waiting.get(table, {}).values():
                if key[: len(waiter.prefix)] == waiter.prefix:
                    waiter.wake()

    def wake_all(self) -> None:
        """Wakes everybody, because nobody knows what changed."""
        for waiters in self._waiting.values():
            for waiter in waiters.values():
                waiter.wake()

    def close(self) -> None:
        """Ends everybody's waiting with `StorageClosedError`; twice is harmless."""
        self._closed = True
        for waiters in self._waiting.values():
            for waiter in waiters.values():
                waiter.close()


@attrs.define(eq=False, repr=False)
class _Waiter:
    prefix: Key
    _event: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _closed: bool = attrs.field(init=False, default=False)

    def wake(self) -> None:
        self._event.set()

    def close(self) -> None:
        self._closed = True
        self._event.set()

    def __aiter__(self) -> _Waiter:
        return self

    async def __anext__(self) -> None:
        await self._event.wait()
        if self._closed:
            raise StorageClosedError
        self._event = anyio.Event()
