"""A log on each backend, and the PostgreSQL server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plugin_sdk.storage import Storage
from tests.storage.making import BACKENDS, opened
from tests.support.postgres import postgres_server, postgres_url

__all__ = ["memory", "postgres_server", "postgres_url", "storage", "storage_url"]


@pytest.fixture(params=BACKENDS)
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of each backend can be made."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return {
        "memory": "memory:",
        "sqlite": f"sqlite://{tmp_path}/store.sqlite",
        "jsonfiles": f"jsonfiles://{tmp_path}/store",
    }[request.param]


@pytest.fixture
async def storage(storage_url: str) -> AsyncIterator[Storage]:
    """An open store of each backend."""
    async with opened(storage_url) as store:
        yield store


@pytest.fixture
async def memory() -> AsyncIterator[Storage]:
    """An open store in memory, for what does not depend on the backend."""
    async with opened("memory:") as store:
        yield store
