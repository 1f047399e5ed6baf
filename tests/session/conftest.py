"""A store of sessions to try things on, in memory and in SQLite."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opencode_core.ids import Ids
from opencode_core.ports.storage import Storage
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import EventLog
from plugins_builtin import storage_memory, storage_sqlite


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    if request.param == "memory":
        opened = await storage_memory.open_store("memory:")
    else:
        opened = await storage_sqlite.open_store(f"sqlite:///{tmp_path}/store.db")
    yield opened
    await opened.aclose()


@pytest.fixture
def sessions(storage: Storage) -> SessionStore:
    return a_store(storage)


def a_store(storage: Storage) -> SessionStore:
    clock = itertools.count(1_700_000_000_000)
    ids = Ids(milliseconds=lambda: next(clock))
    return SessionStore(log=EventLog(storage=storage, ids=ids), ids=ids, now=lambda: next(clock), version="0.1.0")
