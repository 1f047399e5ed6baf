"""Children to kill, and places for stores on every backend that survives them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.nursery import Nursery, nursery
from tests.faults.servers import PostgresStore
from tests.support.postgres import postgres_server, postgres_url, private_postgres_server

__all__ = ["postgres_server", "postgres_url", "private_postgres_server"]

DURABLE = ("sqlite", "jsonfiles", "postgresql")


@pytest.fixture(scope="session")
def children() -> Iterator[Nursery]:
    """Who makes children."""
    if sys.platform != "linux":
        pytest.skip("Children are made, and locked in, as only Linux can.")
    with nursery() as found:
        yield found


@pytest.fixture
def postgres_store(request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    """A store that is not there yet, on the server of this run."""
    store = PostgresStore(request.getfixturevalue("postgres_server"))
    yield store
    store.drop()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The file or the folder of a store that is not there yet."""
    return tmp_path / "below" / "store"


@pytest.fixture(params=DURABLE)
def store_url(request: pytest.FixtureRequest, place: Path) -> str:
    """The URL of a store that is not there yet, on each backend that keeps anything."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_store").url)
    return f"{request.param}://{place}"
