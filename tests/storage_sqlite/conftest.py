"""A place for a store, and stores that are closed when a test is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from plugin_sdk.storage import Storage
from plugins_builtin.storage_sqlite.opening import open_store

Open = Callable[..., Awaitable[Storage]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is, or will be."""
    return tmp_path / "store.sqlite"


@pytest.fixture
async def opened(path: Path) -> AsyncIterator[Open]:
    """Opens a store, with switches for its URL; it is closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_it(switches: str = "", **options: Any) -> Storage:
            storage = await open_store(f"sqlite://{path}{switches}", **options)
            stack.push_async_callback(storage.aclose)
            return storage

        yield open_it
