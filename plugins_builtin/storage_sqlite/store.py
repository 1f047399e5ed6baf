"""The open store: hands what is asked to the writer or the readers. Touches no file itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio.lowlevel
import attrs

from plugin_sdk.storage import (
    Errand,
    EventLoop,
    Key,
    ReadTransaction,
    StorageClosedError,
    StorageError,
    StorageFacts,
    Transaction,
    Wakes,
)
from plugins_builtin.storage_sqlite.checking import check
from plugins_builtin.storage_sqlite.readers import Readers
from plugins_builtin.storage_sqlite.transactions import Reading
from plugins_builtin.storage_sqlite.writer import Writer

R = TypeVar("R")


@attrs.define(eq=False, repr=False, kw_only=True)
class SqliteStorage:
    """One SQLite file, opened. Its laws are those of the port; a refusal is what all writing meets."""

    _path: Path
    _facts: StorageFacts
    _writer: Writer
    _readers: Readers
    _wakes: Wakes
    _loop: EventLoop
    _refusal: Callable[[], StorageError] | None
    _release: Callable[[], None]
    _closing: Errand[None] | None = attrs.field(init=False, default=None)

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """See the port."""
        await self._enter()
        if self._refusal is not None:
            raise self._refusal()
        return await self._writer.run(work)

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """See the port."""
        return await self._read(work)

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """See the port."""
        return self._changes(table, prefix)

    @asynccontextmanager
    async def _changes(self, table: str, prefix: Key) -> AsyncIterator[AsyncIterator[None]]:
        async with self._wakes.waiting(table, prefix) as wakes:
            self._writer.watch()
            try:
                yield wakes
            finally:
                self._writer.unwatch()

    async def check(self) -> Sequence[str]:
        """See the port."""
        return await check(self._read)

    async def facts(self) -> StorageFacts:
        """See the port."""
        return await self._read(self._measured)

    async def aclose(self) -> None:
        """See the port."""
        if self._closing is None:
            self._wakes.close()
            self._closing = Errand(self._stop, self._loop)
        await self._closing.wait()

    async def _read(self, work: Callable[[Reading], R]) -> R:
        await self._enter()
        return await self._readers.run(work)

    async def _enter(self) -> None:
        await anyio.lowlevel.checkpoint_if_cancelled()  # else a thread might begin what was cancelled before
        if self._closing is not None:
            raise StorageClosedError

    def _measured(self, _: Reading) -> StorageFacts:
        files = [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-shm")]
        return attrs.evolve(self._facts, bytes=sum(file.stat().st_size for file in files if file.exists()))

    def _stop(self) -> None:
        # The writer's connection goes last, and takes the journals with it if no other process has the file open.
        self._readers.stop()
        self._writer.stop()
        self._release()
