"""Opens a store when it is first needed, once, and closes it. Decides nothing about what is kept in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import attrs

from opencode_core.errors import StorageClosedError
from opencode_core.ports.storage import Storage


@attrs.define(eq=False, repr=False)
class Kept:
    """A store that may not be open yet.

    Args:
        opener: Opens it; asked again after it failed.
        closes: Whether it is closed here; one that was handed over belongs to whoever opened it.
    """

    _opener: Callable[[], Awaitable[Storage]]
    _closes: bool = True
    _storage: Storage | None = attrs.field(init=False, default=None)
    _closed: bool = attrs.field(init=False, default=False)
    _turn: anyio.Lock = attrs.field(init=False, factory=anyio.Lock)

    async def get(self) -> Storage:
        """Returns the open store.

        Raises:
            StorageClosedError: It was closed.
            StorageError: It cannot be opened.
        """
        async with self._turn:
            if self._closed:
                raise StorageClosedError("The host was closed, and its store with it.", "Open another host.")
            if self._storage is None:
                self._storage = await self._opener()
            return self._storage

    async def aclose(self) -> None:
        """Closes the store if it was opened here; twice is harmless."""
        async with self._turn:
            storage, self._storage, self._closed = self._storage, None, True
            if storage is not None and self._closes:
                await storage.aclose()
