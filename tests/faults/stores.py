"""Opens the store that a URL names, as a host would, with the sessions in it. Tests nothing itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import time_ns

from opencode_core.ids import Ids
from opencode_core.ports.storage import Storage, StorageFactory
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import EventLog
from opencode_core.storage.opening import open_storage
from plugins_builtin import storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite

BACKENDS: dict[str, StorageFactory] = {
    "jsonfiles": storage_jsonfiles.open_store,
    "memory": storage_memory.open_store,
    "postgresql": storage_postgres.open_store,
    "sqlite": storage_sqlite.open_store,
}


async def open_url(url: str, *, create: bool = True) -> Storage:
    """Opens a store through its backend, and makes sure that it is understood."""
    return await open_storage(url, BACKENDS, create=create)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SessionStore]:
    """Opens a store for the length of a block."""
    storage = await open_url(url)
    try:
        yield sessions_in(storage)
    finally:
        await storage.aclose()


def sessions_in(storage: Storage) -> SessionStore:
    """Returns the sessions of an open store."""
    ids = Ids(milliseconds=_now)
    return SessionStore(log=EventLog(storage=storage, ids=ids), ids=ids, now=_now, version="0.1.0")


def _now() -> int:
    return time_ns() // 1_000_000
