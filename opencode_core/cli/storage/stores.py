"""Opens the stores that commands are about, through the plugins of a host. Prints nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from opencode_core.cli.call import Call
from opencode_core.cli.hosts import open_host

if TYPE_CHECKING:
    from opencode_core.host import Host
    from opencode_core.ports.storage import Storage

url_argument = click.argument("url", metavar="[URL]", required=False)
"""The store of a command; the configured one when it is left out."""


@asynccontextmanager
async def open_unprepared(
    host: Host, url: str | None, *, create: bool = False, migrate: bool = False
) -> AsyncIterator[Storage]:
    """Opens a store, whatever is in it, and closes it again.

    Raises:
        StorageError: It cannot be opened.
    """
    import anyio

    from opencode_core.storage.opening import open_backend

    url = url or host.storage_url
    # One in memory is made by whoever opens it, so it cannot be missing either.
    create = create or url.partition(":")[0] == "memory"
    storage = await open_backend(url, host.storage_backends(), create=create, migrate=migrate)
    try:
        yield storage
    finally:
        with anyio.CancelScope(shield=True):
            await storage.aclose()


@asynccontextmanager
async def open_as_it_is(call: Call, url: str | None) -> AsyncIterator[Storage]:
    """Opens a store of the present version to look at, without any change to it.

    Raises:
        StorageError: It cannot be opened, or is not of the present version.
    """
    from opencode_core.storage.schema import prepare

    async with open_host(call, watch=False) as host, open_unprepared(host, url) as storage:
        await prepare(storage, create=False, migrate=False)
        yield storage
