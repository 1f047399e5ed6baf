"""Keeps everything in JSON files, in the layout of the first generation. Opens no folder before it is asked."""

from __future__ import annotations

from plugin_sdk import PluginManifest, hookimpl
from plugin_sdk.storage import Storage, StorageFactory

opencode_plugin = PluginManifest(description="Keeps sessions in JSON files, in the layout of the first generation.")


@hookimpl
def opencode_storage_backends() -> dict[str, StorageFactory]:
    """Offers ``jsonfiles:``."""
    return {"jsonfiles": open_store}


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens a store; what that needs is imported now, not when a host opens."""
    from plugins_builtin.storage_jsonfiles.opening import open_store

    return await open_store(url, create=create, migrate=migrate)
