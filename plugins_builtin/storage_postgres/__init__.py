"""Keeps everything in a PostgreSQL database. Connects to none before it is asked."""

from __future__ import annotations

from plugin_sdk import PluginManifest, hookimpl
from plugin_sdk.storage import Storage, StorageError, StorageFactory

opencode_plugin = PluginManifest(description="Keeps sessions in a PostgreSQL database that many hosts share.")


@hookimpl
def opencode_storage_backends() -> dict[str, StorageFactory]:
    """Offers ``postgresql:``, and ``postgres:``, as many providers of databases spell it."""
    return {"postgresql": open_store, "postgres": open_store}


async def open_store(url: str, *, create: bool = True, migrate: bool = True) -> Storage:
    """Opens a store; what that needs is imported now, not when a host opens."""
    try:
        import psycopg  # noqa: F401 - this is only a question
    except ImportError as error:
        raise StorageError(
            "A PostgreSQL store needs the package 'psycopg', which is not installed or finds no libpq.",
            "Run: pip install 'opencode-core[postgres]'",
        ) from error
    from plugins_builtin.storage_postgres.opening import open_store

    return await open_store(url, create=create, migrate=migrate)
