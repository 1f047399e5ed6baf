"""Keeps everything in a PostgreSQL database. Connects to none before it is asked."""

from __future__ import annotations

from plugin_sdk import PluginManifest, hookimpl
from plugin_sdk.storage import Storage, StorageFactory

opencode_plugin = PluginManifest(description="Keeps sessions in a PostgreSQL database that many hosts share.")


@hookimpl
def opencode_storage_backends() -> dict[str, StorageFactory]:
    """Offers ``postgresql:``."""
    return {"postgresql": open_store}


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens a store; what that needs is imported now, not when a host opens."""
    from plugins_builtin.storage_postgres.opening import open_store

    return await open_store(url, create=create, migrate=migrate)
