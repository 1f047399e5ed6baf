"""Opens the store that a URL names, through the backend that offers its scheme. Knows no backend itself."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import anyio

from opencode_core.errors import StorageError, StorageUrlError
from opencode_core.ports.storage import Storage, StorageFactory
from opencode_core.storage.schema import prepare
from opencode_core.storage.urls import shown

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")
"""Two characters at least: one letter before a colon is a drive."""


async def open_storage(
    url: str, backends: Mapping[str, StorageFactory], *, create: bool = True, migrate: bool = True
) -> Storage:
    """Opens a store, and makes sure that what is in it is understood here.

    Args:
        url: Such as ``sqlite:///home/me/opencode.db``.
        backends: Who opens which scheme.
        create: Whether a store is made where there is none.
        migrate: Whether an older one is brought up to date.

    Raises:
        StorageUrlError: The URL has no scheme, one that nobody offers, or is not one that the backend understands.
        StorageMissingError: There is no store, and none should be made.
        StorageVersionError: It was written by a newer version, or needs a migration that was not asked for.
        StorageForeignError: Something else is there.
        StorageDamagedError: It is broken, or a copy that was never finished.
        StorageError: It cannot be reached, read or written.
    """
    storage = await open_backend(url, backends, create=create, migrate=migrate)
    try:
        await make_ready(storage, create=create, migrate=migrate)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await storage.aclose()
        raise
    return storage


async def open_backend(
    url: str, backends: Mapping[str, StorageFactory], *, create: bool = True, migrate: bool = True
) -> Storage:
    """Opens a store, whatever is in it.

    Raises:
        StorageUrlError: The URL has no scheme, one that nobody offers, or is not one that the backend understands.
        StorageError: As `open_storage`, as far as the backend can tell.
    """
    factory = _factory(url, backends)
    try:
        storage = await factory(url, create=create, migrate=migrate)
    except StorageError:
        raise
    except Exception as error:  # what it says is not repeated: it may have the URL in it, with a password
        raise _faulty(url, f"failed with '{type(error).__name__}'") from error
    if not hasattr(storage, "transact"):
        raise _faulty(url, f"gave a '{type(storage).__name__}' instead of a store")
    return storage


async def make_ready(storage: Storage, *, create: bool = True, migrate: bool = True) -> None:
    """Makes sure that what is in a store is understood here; what cannot be listed is only logged.

    Raises:
        StorageError: As `prepare`.
    """
    prepared = await prepare(storage, create=create, migrate=migrate)
    for problem in prepared.unreadable:
        logging.getLogger("opencode.storage").warning("%s", problem)


def _factory(url: str, backends: Mapping[str, StorageFactory]) -> StorageFactory:
    scheme, colon, _ = url.partition(":")
    if not colon or not _SCHEME.fullmatch(scheme):
        raise _no_scheme(url)
    try:
        return backends[scheme]
    except KeyError:
        # The rest is not shown: without a scheme that is known, nobody can say where a password is in it.
        raise StorageUrlError(
            f"No plugin offers the storage scheme '{scheme}'.",
            f"{_known(backends)} Install the plugin that offers it, or choose another one.",
        ) from None


def _faulty(url: str, what: str) -> StorageError:
    return StorageError(
        f"The plugin that offers '{url.partition(':')[0]}:' {what}.",
        "That is a fault of the plugin; '--debug' shows where.",
    )


def _known(backends: Mapping[str, StorageFactory]) -> str:
    if not backends:
        return "No storage plugin is loaded."
    return f"Known are {', '.join(repr(f'{scheme}:') for scheme in sorted(backends))}."


def _no_scheme(url: str) -> StorageUrlError:
    if not url.strip():
        return StorageUrlError("The storage URL is empty.", "Write it like 'sqlite:///home/me/opencode.db'.")
    if "@" in url:  # a URL with a slip in it, and perhaps with a password
        return StorageUrlError("The storage URL has no scheme.", "Write it like 'postgresql://me@server/opencode'.")
    path = shown(url)
    rest = f"//{path}" if path.startswith("/") else path
    return StorageUrlError(
        f"'{path}' is a path, not a storage URL.",
        f"Put what it is before it, as in 'sqlite:{rest}' or 'jsonfiles:{rest}'.",
    )
