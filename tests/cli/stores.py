"""Stores to run commands on, made in this process before the command runs in its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from opencode_core.ports.storage import Storage
from opencode_core.storage.schema import prepare
from tests.storage.filling import BACKENDS, everything, fill, first_generation, put


def with_store(url: str, work: Callable[[Storage], Any]) -> Any:
    """Open a store as its backend does, do something with it, and close it."""

    async def main() -> Any:
        storage = await BACKENDS[url.partition(":")[0]](url)
        try:
            return await work(storage)
        finally:
            await storage.aclose()

    return anyio.run(main)


def filled(url: str, *sessions: str) -> str:
    """Make a store with sessions in it."""
    with_store(url, lambda storage: fill(storage, *sessions))
    return url


def made_empty(url: str) -> str:
    """Make a store with nothing in it but its version."""
    with_store(url, prepare)
    return url


def made_first_generation(url: str, count: int = 3) -> str:
    """Make a store that looks as if the first generation had written it."""
    with_store(url, lambda storage: put(storage, first_generation(count)))
    return url


def numbered(url: str, count: int) -> str:
    """Make a store with many small documents."""
    documents: Any = {("part", ("msg", f"{number:06}")): {"sessionID": "ses_1"} for number in range(count)}
    with_store(url, prepare)
    with_store(url, lambda storage: put(storage, documents))
    return url


def content(url: str) -> Any:
    """Return all that is in a store."""
    return with_store(url, everything)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, to see that nothing changed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
