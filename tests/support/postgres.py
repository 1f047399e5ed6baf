"""A pytest plugin: one real PostgreSQL server for all workers of a run, and a fresh empty store for each test.

Without PostgreSQL the tests that need it are skipped and counted at the end, or fail where
`OPENCODE_REQUIRE_POSTGRES=1` is set.
"""

import os
import uuid
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.support.postgres_server import (
    PostgresMissing,
    PostgresServer,
    private_postgres,
    running_postgres,
    shared_postgres,
)

__all__ = [
    "PostgresServer",
    "do_without",
    "postgres_server",
    "postgres_url",
    "private_postgres",
    "private_postgres_server",
    "pytest_terminal_summary",
    "running_postgres",
]

_SKIPPED = "PostgreSQL is not installed"
# Read now: each test starts with none of these variables.
_REQUIRED = os.environ.get("OPENCODE_REQUIRE_POSTGRES") == "1"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server of this run, shared by its workers; do not stop it."""
    folder = tmp_path_factory.getbasetemp()
    meeting = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    try:
        with shared_postgres(meeting) as server:
            yield server
    except PostgresMissing as missing:
        do_without(missing)


@pytest.fixture
def private_postgres_server() -> Iterator[PostgresServer]:
    """A server for one test alone, which may stop and start it; this takes a second or two."""
    try:
        with private_postgres() as server:
            yield server
    except PostgresMissing as missing:
        do_without(missing)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a store that does not exist yet: a schema of its own in a shared database."""
    schema = f"test_{uuid.uuid4().hex[:16]}"
    yield postgres_server.url(schema=schema)
    postgres_server.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were skipped because there is no PostgreSQL."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if _SKIPPED in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests were SKIPPED because {_SKIPPED}. Install it to run them "
            "(Debian: 'apt install postgresql'), or set OPENCODE_REQUIRE_POSTGRES=1 to make this a failure.",
            yellow=True,
            bold=True,
        )


def do_without(missing: PostgresMissing) -> NoReturn:
    """Skips the test, or fails it where PostgreSQL is required."""
    reason = f"{_SKIPPED}: {missing}"
    if _REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
