"""What the tests of every law share: how a store is opened, and how a broken law is told. Tests nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import anyio
import pytest
from anyio.abc import TaskGroup

from opencode_core.model.json import JSON
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, StorageFactory, Transaction

R = TypeVar("R")
Rows = list[tuple[Key, JSON]]


class StorageLaws:
    """How a store is opened for one test.

    Attributes:
        factory: Opens a store.
        url: What it opens, with ``{tmp_path}`` in the place of a folder that is new for each test.
        durable: Whether a store that was closed can be opened again with everything in it.
        shared: Whether two stores that are opened with one URL are one store.
        patience: How many seconds something that must happen may take before the test says that it does not.
    """

    # An async test runs on each event loop that is installed, whichever mode the plugin of anyio is in.
    pytestmark: ClassVar[Any] = pytest.mark.anyio

    factory: ClassVar[StorageFactory]
    url: ClassVar[str]
    durable: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    patience: ClassVar[float] = 30.0

    def __init_subclass__(
        cls,
        *,
        factory: StorageFactory | None = None,
        url: str | None = None,
        durable: bool | None = None,
        shared: bool | None = None,
    ) -> None:
        super().__init_subclass__()
        if factory is not None:
            cls.factory = staticmethod(factory)
        for name, value in (("url", url), ("durable", durable), ("shared", shared)):
            if value is not None:
                setattr(cls, name, value)

    @pytest.fixture
    def storage_url(self, tmp_path: Path) -> str:
        """The URL of a store that is not there yet; override it where ``url`` does not suffice."""
        return self.url.replace("{tmp_path}", str(tmp_path))

    @pytest.fixture
    async def storage(self, anyio_backend: object, storage_url: str) -> AsyncIterator[Storage]:
        """A new, empty store."""
        async with self.opened(storage_url) as storage:
            yield storage

    @asynccontextmanager
    async def opened(self, url: str, *, create: bool = True) -> AsyncIterator[Storage]:
        """Opens a store, and closes it."""
        storage = await self.factory(url, create=create)
        try:
            yield storage
        finally:
            with anyio.CancelScope(shield=True):
                await storage.aclose()

    def needs_shared(self) -> None:
        """Leaves out a test of what two stores with one URL see of each other."""
        if not self.shared:
            pytest.skip("Two stores that are opened with one URL are two stores here (shared=False).")

    @contextmanager
    def soon(self, law: str, what: str) -> Iterator[None]:
        """Says which law is broken instead of waiting for ever."""
        try:
            with anyio.fail_after(self.patience):
                yield
        except TimeoutError as error:
            raise broken(law, f"{what}, but it did not within {self.patience} seconds") from error


@asynccontextmanager
async def together() -> AsyncIterator[TaskGroup]:
    """A task group that raises what went wrong first by itself, so that a broken law is easy to find."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except ExceptionGroup as group:
        error: Exception = group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None


def broken(law: str, what: str) -> AssertionError:
    """Returns the error that names a broken law."""
    return AssertionError(f"The law of {law} is broken: {what}.")


def expect(law: str, what: str, *, found: object, wanted: object) -> None:
    """Compares, and names the law if it differs."""
    if found != wanted:
        raise broken(law, f"{what}; wanted {_short(wanted)}, found {_short(found)}")


@contextmanager
def refused(law: str, what: str, *kinds: type[BaseException]) -> Iterator[None]:
    """Expects one of these errors, and names the law if another or none comes."""
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        yield
    except kinds:
        return
    except Exception as error:
        raise broken(law, f"{what} must raise {names}, not {type(error).__name__}") from error
    raise broken(law, f"{what} must raise {names}, and raised nothing")


async def put(storage: Storage, table: str, key: Key, document: JSON) -> None:
    """Writes one document in a transaction of its own."""
    await storage.transact(lambda tx: tx.put(table, key, document))


def writing(table: str, documents: Mapping[Key, JSON]) -> Callable[[Transaction], None]:
    """Returns work that writes these documents."""

    def work(tx: Transaction) -> None:
        for key, document in documents.items():
            tx.put(table, key, document)

    return work


async def get(storage: Storage, table: str, key: Key) -> JSON:
    """Reads one document."""
    return await storage.view(lambda view: view.get(table, key))


async def rows(storage: Storage, table: str, prefix: Key = ()) -> Rows:
    """Reads what is below a prefix."""
    return await storage.view(lambda view: list(view.scan(table, prefix)))


def increment(table: str, key: Key) -> Callable[[Transaction], int]:
    """Returns work that counts one up and returns the new count."""

    def work(tx: Transaction) -> int:
        count = number(tx, table, key) + 1
        tx.put(table, key, {"count": count})
        return count

    return work


def number(view: ReadTransaction, table: str, key: Key) -> int:
    """Returns what was counted; 0 when nothing was."""
    document = view.get(table, key)
    if document is None:
        return 0
    assert isinstance(document, dict)
    return int(document["count"])


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"
