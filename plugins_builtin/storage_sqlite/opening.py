"""Opens a store, or says exactly why not."""

from __future__ import annotations

from plugin_sdk.storage import Storage, StorageError


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens a store."""
    raise StorageError("Not there yet.")
