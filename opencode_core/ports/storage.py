"""What a storage backend offers: an ordered, transactional document store. Knows no session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol, TypeAlias, TypeVar

from opencode_core.model.json import JSON

R = TypeVar("R")

Key: TypeAlias = tuple[str | int, ...]


class ReadTransaction(Protocol):
    """One consistent snapshot; valid only inside the function it was handed to."""

    def get(self, table: str, key: Key) -> JSON:
        """Returns the document, or None."""
        ...

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        """Yields documents below a prefix in key order; ``after`` is exclusive."""
        ...


class Transaction(ReadTransaction, Protocol):
    """A snapshot that sees its own writes, which become visible to others all at once or never."""

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document, replacing the one that is there."""
        ...

    def delete(self, table: str, key: Key) -> None:
        """Removes a document; a missing one is fine."""
        ...


class Storage(Protocol):
    """An open store.

    Laws: ``transact`` is atomic and serialisable, and has returned only when the result is durable; ``work`` is
    synchronous, may run more than once and has no other effects; a change wake is advisory and never lost for good.
    """

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """Runs work atomically and serialisably."""
        ...

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """Runs work on one consistent snapshot, read-only."""
        ...

    def changes(self, table: str, prefix: Key = ()) -> AsyncIterator[None]:
        """Wakes when something below the prefix may have changed, in this process or another."""
        ...

    async def aclose(self) -> None:
        """Closes the store; twice is harmless."""
        ...


class StorageFactory(Protocol):
    """Opens the store that a URL names."""

    async def __call__(self, url: str) -> Storage:
        """Returns the open store; refuses an unknown, newer or damaged one without changing it."""
        ...
