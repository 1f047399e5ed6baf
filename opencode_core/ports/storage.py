"""What a storage backend offers: an ordered, transactional document store. Knows no session.

The laws, which ``plugin_sdk.testing.StorageContract`` proves of a backend:

Documents
    A document is a JSON value other than null. What is read equals what was written, in the order of its keys too.
    A document belongs to whoever holds it: changing one that was written or read changes nothing in the store.

Order
    Keys sort part by part; numbers before texts, numbers by value, texts by code point, a key before those that it
    begins. A scan is in that order, or exactly the reverse. Nothing depends on when something was written.

Atomicity
    What a transaction wrote becomes visible and durable all at once, or, if the work raised, the process died or the
    store failed, never. What the work raises comes out of ``transact`` unchanged.

Serialisability
    Any history of transactions and views, in one process or many, is one that could have happened one at a time. So
    what a transaction read is still true when it commits.

Read-your-writes
    A transaction sees its own writes. A view that starts after ``transact`` returned, in any process, sees the result.

Durability
    When ``transact`` has returned, the result survives the death of the process, and of the machine where the
    backend has a disk.

Retry
    The work is a plain function. It may run more than once, in another thread, and may be thrown away, so it does
    nothing but read and write its transaction. A view's work runs at most as often.

Cancellation
    A cancelled ``transact`` either wrote nothing and raises the cancellation, or it had begun, finishes, and returns
    its result: the caller never has to guess. The store works on in both cases.

Wakes
    Every commit after a ``changes`` block was entered wakes it at least once, also when another process committed, and
    also when the connection was lost between. Wakes coalesce, and there may be more than there were changes: read.

Closing
    ``aclose`` lets what had begun finish, refuses what comes later with `StorageClosedError`, ends ``changes`` with the
    same error, and releases every file, lock, thread and connection. Closing twice is harmless.

Failure
    A failure of the store is a `StorageError` of the kind that fits. After one the store can be used again, unless it
    is damaged or closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from opencode_core.model.json import JSON
from opencode_core.model.storage import Key, StorageFacts

R = TypeVar("R")


class ReadTransaction(Protocol):
    """One consistent snapshot; valid only inside the function it was handed to.

    Every method raises `TransactionEndedError` afterwards, `InvalidKeyError` for a table name other than a lower-case
    letter followed by up to 62 lower-case letters, digits and underscores, and for a key that is empty, longer than
    1,000 bytes encoded, or has anything in it but texts and whole numbers of 64 bits; a text is valid Unicode.
    """

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
        """Yields the documents whose keys begin with the prefix, as they were when this was called, in key order.

        Args:
            table: Where to look; a table in which nothing was written yet is empty.
            prefix: The first parts of the keys; a key begins with itself, and every key with ``()``.
            after: Starts behind this key, in the direction of the scan; it need not exist.
            limit: At most so many; 0 for none.
            reverse: From the last key to the first.

        Raises:
            ValueError: The limit is negative.
        """
        ...

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables in which there is something, sorted."""
        ...


class Transaction(ReadTransaction, Protocol):
    """A snapshot that sees its own writes, which become visible to others all at once or never."""

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document, replacing the one that is there.

        Raises:
            InvalidDocumentError: It is null, or not JSON.
        """
        ...

    def delete(self, table: str, key: Key) -> None:
        """Removes a document; a missing one is fine."""
        ...


class Storage(Protocol):
    """An open store, used from the event loop that opened it. Its laws are at the top of this module."""

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        """Runs work atomically and serialisably, and returns when the result is durable.

        Raises:
            StorageError: The store failed, and nothing was written, unless the error says that this is unknown.
            Exception: Whatever the work raised; nothing was written.
        """
        ...

    async def view(self, work: Callable[[ReadTransaction], R]) -> R:
        """Runs work on one consistent snapshot, read-only.

        Raises:
            StorageError: The store failed.
            Exception: Whatever the work raised.
        """
        ...

    def changes(self, table: str, prefix: Key = ()) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Wakes when something below the prefix may have changed, in this process or another.

        To miss nothing, enter the block first, then read, then wait, and read again at each wake.

        Raises:
            StorageClosedError: The store was closed; also from the iterator.
        """
        ...

    async def check(self) -> Sequence[str]:
        """Looks at everything the backend keeps and returns what is wrong, one sentence each. Repairs nothing."""
        ...

    async def facts(self) -> StorageFacts:
        """Tells where the store is and how large."""
        ...

    async def aclose(self) -> None:
        """Closes the store; twice is harmless."""
        ...


class StorageFactory(Protocol):
    """Opens the store that a URL names."""

    async def __call__(self, url: str, *, create: bool = True, migrate: bool = True) -> Storage:
        """Returns the open store.

        A store that cannot be opened is left exactly as it was.

        Args:
            url: What the person configured, with the scheme.
            create: Whether a store is made where there is none; else that is a `StorageMissingError`.
            migrate: Whether a store of an older layout is brought up to date, under a lock that keeps other
                processes out, after a backup where the store is a file or a folder; else that is a
                `StorageVersionError`.

        Raises:
            StorageUrlError: The URL is not one that this backend understands.
            StorageMissingError: There is no store, and none should be made.
            StorageVersionError: It was written by a newer version, or needs a migration that was not asked for.
            StorageForeignError: Something is there, but it is not a store of this backend.
            StorageDamagedError: It is a store, and it is broken.
            StorageError: It cannot be reached, read or written.
        """
        ...
