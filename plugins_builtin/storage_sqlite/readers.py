"""Runs views in a few threads, each on its own connection. Writes nothing, and never waits for the writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from plugin_sdk.storage import EventLoop
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.faults import Faults
from plugins_builtin.storage_sqlite.jobs import Job
from plugins_builtin.storage_sqlite.transactions import Reading

if TYPE_CHECKING:
    from plugins_builtin.storage_sqlite.database import Database  # which is slow to import, so a thread does it

R = TypeVar("R")

MOST_THREADS = 4


@attrs.define(eq=False, repr=False)
class Readers:
    """The reading threads; one is started when all are busy, up to four. Used from the event loop."""

    _database: Database
    _faults: Faults
    _loop: EventLoop
    _verify: Callable[[], None]
    _jobs: SimpleQueue[Job[Reading] | None] = attrs.field(init=False, factory=SimpleQueue)
    _threads: list[threading.Thread] = attrs.field(init=False, factory=list)
    _waiting: int = attrs.field(init=False, default=0)

    async def run(self, work: Callable[[Reading], R]) -> R:
        """Runs work on one snapshot.

        Raises:
            StorageError: The store failed.
            Exception: Whatever the work raised.
        """
        job: Job[Reading] = Job(work)
        self._waiting += 1
        try:
            if self._waiting > len(self._threads) < MOST_THREADS:
                self._start()
            self._jobs.put(job)
            result: R = await job.outcome.wait()
            return result
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        """Ends the threads when they have done what was asked before, and closes their connections. Blocks."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._database.close()

    def _start(self) -> None:
        # A daemon, so that a host that forgot to close can end.
        thread = threading.Thread(target=self._serve, name="opencode-sqlite-reader", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            if job.outcome.begin():
                self._answer(job)
                self._loop.deliver((job.outcome,))

    def _answer(self, job: Job[Reading]) -> None:
        try:
            job.outcome.succeed(self._read(job.work))
        except BaseException as error:  # whatever it is, it belongs to the caller
            job.outcome.fail(error)

    def _read(self, work: Callable[[Reading], Any]) -> Any:
        connection = self._begun()
        reading = Reading(connection, self._faults)
        try:
            return work(reading)
        finally:
            reading.end()
            self._finish(connection)
            self._verify()

    def _begun(self) -> sqlite3.Connection:
        try:
            connection = self._database.connection()
            connection.execute(queries.BEGIN_READING)
        except sqlite3.Error as error:
            raise self._faults.of(error) from error
        return connection

    def _finish(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute(queries.ROLLBACK)
        except sqlite3.Error:  # a failure may have ended the transaction by itself
            self._database.renew()
