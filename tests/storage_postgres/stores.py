"""Opens stores that are closed again, and says short things to them."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from plugin_sdk.storage import JSON, Key, Storage, Transaction
from plugins_builtin.storage_postgres.opening import open_store


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Storage]:
    """An open store."""
    store = await open_store(url, **options)
    try:
        yield store
    finally:
        await store.aclose()


async def put(store: Storage, key: Key, document: JSON, *, table: str = "things") -> None:
    """Write one document."""
    await store.transact(lambda tx: tx.put(table, key, document))


async def put_many(store: Storage, keys: Iterable[Key], *, table: str = "things") -> None:
    """Write many documents in one transaction."""

    def work(tx: Transaction) -> None:
        for key in keys:
            tx.put(table, key, list(key))

    await store.transact(work)


async def get(store: Storage, key: Key, *, table: str = "things") -> JSON:
    """Read one document."""
    return await store.view(lambda tx: tx.get(table, key))


def schema_of(url: str) -> str:
    """The schema that a URL names."""
    return parse_qs(urlsplit(url).query)["schema"][0]


def named(url: str) -> tuple[str, str]:
    """A URL whose connections can be told from others, and the condition that selects them."""
    name = f"app-{schema_of(url)}"
    return f"{url}&application_name={name}", f"application_name = '{name}'"
