"""Crashes a PostgreSQL server in several ways, and waits for what a killed client left there. Tests nothing itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from uuid import uuid4

import attrs

from tests.support.postgres_server import PostgresServer, private_postgres

LONGEST_WAIT = 50.0


@attrs.frozen
class PostgresStore:
    """A store that does not exist yet, in a schema of its own, and whom to ask about it."""

    server: PostgresServer
    name: str = attrs.field(factory=lambda: f"faults_{uuid4().hex[:16]}")
    _ways: Iterator[int] = attrs.field(init=False, factory=lambda: cycle(range(3)))

    @property
    def url(self) -> str:
        """The storage URL; who uses it can be told by the name of the application."""
        return self.server.url(schema=self.name, application_name=self.name)

    def calm(self) -> None:
        """Returns when the server works for nobody any more."""
        _until(self._is_calm)

    def crash(self) -> None:
        """Crashes the server, or one of its processes, each time in another way; returns when it answers again."""
        (self._kill_backend, self._stop_at_once, self._kill_postmaster)[next(self._ways)]()
        _until(self._answers)

    def close_connections(self) -> int:
        """Ends the connections of the store as an administrator does; returns how many."""
        return self.server.kill_backends(where=f"application_name = '{self.name}'")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds every table of the store, from another connection."""
        import psycopg

        rows = self.server.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{self.name}'")
        with psycopg.connect(self.server.url()) as connection:
            for (table,) in rows:
                connection.execute(f"LOCK TABLE {self.name}.{table} IN ACCESS EXCLUSIVE MODE".encode())
            yield
            connection.rollback()

    def drop(self) -> None:
        """Removes the store."""
        self.server.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {self.name} CASCADE")

    def _stop_at_once(self) -> None:
        self.server.stop("immediate")
        self._start()

    def _kill_postmaster(self) -> None:
        first = (self.server.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
        os.kill(int(first), signal.SIGKILL)
        self._start()

    def _kill_backend(self) -> None:
        rows = self.server.execute(f"SELECT pid FROM pg_stat_activity WHERE application_name = '{self.name}'")
        if rows:
            os.kill(rows[0][0], signal.SIGKILL)

    def _start(self) -> None:
        def is_started() -> bool:
            try:
                self.server.start()
            except RuntimeError:  # what a killed postmaster left is still ending
                return self._answers()
            return True

        _until(is_started)

    def _is_calm(self) -> bool:
        asked = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{self.name}'"
        return self._answers() and self.server.execute(asked) == [(0,)]

    def _answers(self) -> bool:
        import psycopg

        try:
            self.server.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def private_store() -> Iterator[PostgresStore]:
    """Runs a server that may be crashed, with an empty store.

    Raises:
        PostgresMissing: There is none that can be started.
    """
    with private_postgres() as server:
        yield PostgresStore(server)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while not is_so():
        assert time.monotonic() < deadline, "The PostgreSQL server did not come to rest."
        time.sleep(0.02)
