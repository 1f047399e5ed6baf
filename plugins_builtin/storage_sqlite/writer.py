"""Carries out all writing, in one thread that commits whatever is queued together. Reads nothing for views.

While somebody waits for changes, the thread also looks whether another process committed; its own connection tells
that apart from its own commits. Nobody else can commit while it holds the lock, so it misses nothing by writing.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

import attrs

from plugin_sdk.storage import EventLoop, Outcome, Wakes
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.connecting import number
from plugins_builtin.storage_sqlite.faults import Faults
from plugins_builtin.storage_sqlite.groups import Settled, carry_out
from plugins_builtin.storage_sqlite.jobs import Job
from plugins_builtin.storage_sqlite.transactions import Writing

if TYPE_CHECKING:
    from plugins_builtin.storage_sqlite.database import Database  # which is slow to import, so a thread does it

R = TypeVar("R")

MOST_JOBS = 256
"""In one transaction, so that a flood of jobs cannot make the first wait for ever."""

_SHORTEST, _LONGEST, _GROWTH = 0.005, 0.1, 1.25
"""Seconds between two looks at what other processes did: short after something happened, then longer."""


@attrs.define(eq=False, repr=False)
class Writer:
    """The writing thread; used from the event loop."""

    _faults: Faults
    _loop: EventLoop
    _wakes: Wakes
    _jobs: SimpleQueue[Job[Writing] | None] = attrs.field(init=False, factory=SimpleQueue)
    _thread: threading.Thread | None = attrs.field(init=False, default=None)
    _watchers: int = attrs.field(init=False, default=0)
    _stopping: bool = attrs.field(init=False, default=False)
    _database: Database = attrs.field(init=False)
    _seen: int = attrs.field(init=False, default=-1)
    _pause: float = attrs.field(init=False, default=_SHORTEST)

    async def start(self, open_database: Callable[[], Database]) -> None:
        """Starts the thread, which opens its database and closes it at its end.

        Raises:
            Exception: Whatever opening raised; then there is no thread.
        """
        opened: Outcome[None] = Outcome()
        # A daemon, so that a host that forgot to close can end.
        self._thread = threading.Thread(
            target=self._serve, args=(open_database, opened), name="opencode-sqlite-writer", daemon=True
        )
        self._thread.start()
        try:
            await opened.wait()
        except BaseException:
            self._thread.join()  # it failed or was withdrawn, so there is nothing left to wait for
            raise

    async def run(self, work: Callable[[Writing], R]) -> R:
        """Runs work in a transaction, and returns when its result is durable.

        Raises:
            StorageError: The store failed, and nothing was written, unless the error says that this is unknown.
            Exception: Whatever the work raised; nothing was written.
        """
        job: Job[Writing] = Job(work)
        self._jobs.put(job)
        result: R = await job.outcome.wait()
        return result

    def watch(self) -> None:
        """Looks for other processes' commits from now on.

        What the thread saw last is older than this call, so every commit from now on differs from it.
        """
        self._watchers += 1
        if self._watchers == 1:
            self._jobs.put(None)

    def unwatch(self) -> None:
        """Stops that, when everybody who asked for it has."""
        self._watchers -= 1

    def stop(self) -> None:
        """Ends the thread when it has done what was asked before. Blocks."""
        self._stopping = True
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()

    def _serve(self, open_database: Callable[[], Database], opened: Outcome[None]) -> None:
        if not opened.begin():
            return
        try:
            self._database = open_database()
            self._seen = self._data_version()
            opened.succeed(None)
        except BaseException as error:  # whatever it is, it belongs to the caller
            opened.fail(error)
            return
        finally:
            self._loop.deliver((opened,))
        try:
            self._work()
        finally:
            self._database.close()

    def _work(self) -> None:
        while not (self._stopping and self._jobs.empty()):
            job = self._next()
            if job is not None:
                self._commit(job)
            if self._watchers:
                self._look_around()

    def _next(self) -> Job[Writing] | None:
        if not self._watchers:
            return self._jobs.get()
        try:
            return self._jobs.get(timeout=self._pause)
        except Empty:
            return None

    def _commit(self, first: Job[Writing]) -> None:
        jobs = [first, *self._queued(MOST_JOBS - 1)]
        try:
            connection = self._database.connection()
        except sqlite3.Error as error:
            fault = self._faults.of(error)
            self._acknowledge([Settled(job, error=fault) for job in jobs])
            return
        self._acknowledge(carry_out(connection, jobs, self._queued(MOST_JOBS - len(jobs)), self._faults))
        if connection.in_transaction:  # it could not be rolled back
            self._database.renew()
            self._seen = -1  # another connection counts anew
        self._pause = _SHORTEST

    def _queued(self, most: int) -> Iterator[Job[Writing]]:
        while most > 0 and not self._jobs.empty():  # nobody else takes from it
            job = self._jobs.get_nowait()
            if job is not None:
                most -= 1
                yield job

    def _acknowledge(self, group: Sequence[Settled]) -> None:
        for settled in group:
            if settled.error is None:
                settled.job.outcome.succeed(settled.value)
            else:
                settled.job.outcome.fail(settled.error)
        if self._watchers:
            self._loop.soon(partial(self._wakes.wake, [place for settled in group for place in settled.written]))
        self._loop.deliver([settled.job.outcome for settled in group])

    def _look_around(self) -> None:
        seen = self._data_version()
        if seen == self._seen:
            self._pause = min(self._pause * _GROWTH, _LONGEST)
        else:
            self._seen, self._pause = seen, _SHORTEST
            self._loop.soon(self._wakes.wake_all)

    def _data_version(self) -> int:
        """Returns a number that changes when others commit; -1 on failure, so that who waits reads, and hears why."""
        try:
            return number(self._database.connection(), queries.DATA_VERSION)
        except sqlite3.Error:
            return -1
