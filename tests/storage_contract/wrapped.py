"""A store in memory behind doors that a mutant can bend, one at a time."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from plugin_sdk.storage import JSON, Key, ReadTransaction, Storage, StorageFacts, StorageMissingError, Transaction
from plugins_builtin.storage_memory import open_store


class WrappedTransaction:
    """Passes everything on."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def get(self, table: str, key: Key) -> JSON:
        return self.inner.get(table, key)

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        return self.inner.scan(table, prefix, after=after, limit=limit, reverse=reverse)

    def tables(self) -> Sequence[str]:
        return self.inner.tables()

    def put(self, table: str, key: Key, document: JSON) -> None:
        self.inner.put(table, key, document)

    def delete(self, table: str, key: Key) -> None:
        self.inner.delete(table, key)


class WrappedStorage:
    """Passes everything on; what a mutant bends is overridden in a subclass.

    Attributes:
        caught_by: The test of the suite that must notice.
        names_the_law: Whether that test says so itself; else the store's own error comes through it.
        transaction: What the work is handed.
    """

    caught_by: str = ""
    names_the_law: bool = True
    transaction: type[WrappedTransaction] = WrappedTransaction

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    async def transact(self, work: Callable[[Transaction], Any]) -> Any:
        return await self.inner.transact(lambda tx: work(self.transaction(tx)))

    async def view(self, work: Callable[[ReadTransaction], Any]) -> Any:
        return await self.inner.view(lambda view: work(self.transaction(view)))

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return self.inner.changes(table, prefix)

    async def check(self) -> Sequence[str]:
        return await self.inner.check()

    async def facts(self) -> StorageFacts:
        return await self.inner.facts()

    async def aclose(self) -> None:
        await self.inner.aclose()

    @classmethod
    async def opened(cls, url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        """Opens one of this kind; there is never one already."""
        if not create:
            raise StorageMissingError("There is none.")
        return cls(await open_store(url))
