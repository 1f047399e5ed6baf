"""An open PostgreSQL store: hands every request to the part that answers it. Speaks no SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio.lowlevel
import attrs

from plugin_sdk.storage import (
    Errand,
    EventLoop,
    Key,
    ReadTransaction,
    StorageClosedError,
    StorageFacts,
    Transaction,
    Wakes,
)
from plugins_builtin.storage_postgres.jobs import Jobs
from plugins_builtin.storage_postgres.listener import Listener
from plugins_builtin.storage_postgres.marker import Marker
from plugins_builtin.storage_postgres.pool import Pool

R = TypeVar("R")


@attrs.define(eq=False, repr=False, kw_only=True)
class PostgresStorage:
    """A store in one schema of a PostgreSQL database."""

    _loop: EventLoop
    _wakes: Wakes
    _jobs: Jobs
    _pool: Pool
    _marker: Marker
    _listener: Listener
    _check: Callable[[], Sequence[str]]
    _facts: Callable[[], StorageFacts]
    _closing: Errand[None] | None = attrs.field(init=False, default=None)

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """Runs work atomically and serialisably, and returns when the result is durable."""
        await self._admit()
        result: R = await self._jobs.transact(work).wait()
        return result

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """Runs work on one consistent snapshot, read-only."""
        await self._admit()
        result: R = await self._jobs.view(work).wait()
        return result

    @asynccontextmanager
    async def changes(self, table: str, prefix: Key = ()) -> AsyncIterator[AsyncIterator[None]]:
        """Wakes when something below the prefix may have changed, in this process or another."""
        async with self._wakes.waiting(table, prefix) as wakes:
            await self._listener.listening()
            yield wakes

    async def check(self) -> Sequence[str]:
        """Looks at every document and returns what is wrong."""
        await self._admit()
        problems: Sequence[str] = await self._jobs.call(self._check).wait()
        return problems

    async def facts(self) -> StorageFacts:
        """Tells where the store is and how large."""
        await self._admit()
        facts: StorageFacts = await self._jobs.call(self._facts).wait()
        return facts

    async def aclose(self) -> None:
        """Closes the store; twice is harmless."""
        if self._closing is None:
            self._listener.refuse()
            self._wakes.close()
            self._closing = Errand(self._finish, self._loop)
        await self._closing.wait()

    def _finish(self) -> None:
        self._listener.stop()
        self._jobs.finish()
        connection = self._pool.take_idle()
        if connection is not None:
            self._marker.remove(connection)
            connection.close()
        self._pool.empty()

    async def _admit(self) -> None:
        await anyio.lowlevel.checkpoint_if_cancelled()  # who was cancelled before need not begin
        if self._closing is not None:
            raise StorageClosedError
