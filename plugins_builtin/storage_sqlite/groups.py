"""Carries out a group of jobs in one transaction, each as if it were alone. Queues nothing, and tells nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import attrs

from plugin_sdk.storage import Key, StorageError
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.connecting import number
from plugins_builtin.storage_sqlite.faults import Faults, leaves_doubt
from plugins_builtin.storage_sqlite.jobs import Job
from plugins_builtin.storage_sqlite.transactions import Held, Writing, write


@attrs.define(eq=False, repr=False)
class Settled:
    """What became of one job: a value, or an error; and what it wrote, if it did."""

    job: Job[Writing]
    value: Any = None
    error: BaseException | None = None
    written: Sequence[tuple[str, Key]] = ()


def carry_out(
    connection: sqlite3.Connection, jobs: Sequence[Job[Writing]], more: Iterable[Job[Writing]], faults: Faults
) -> list[Settled]:
    """Runs jobs and commits them together; all that succeeded are durable when this returns.

    A job that raises is taken back alone. When the store itself fails under one of several, everything is rolled back
    and each is repeated by itself, so that each hears of its own failure only.

    Args:
        connection: In which no transaction is open, before and after.
        jobs: What was there before the lock was asked for.
        more: What came while it was waited for; taken only when the lock was had.
        faults: Names the errors.
    """
    try:
        connection.execute(queries.BEGIN_WRITING)
    except Exception as error:
        return _refused(jobs, error, faults)
    begun: list[Job[Writing]] = []
    waiting = iter(jobs)
    held: Held = {}
    try:
        settled = [_run(connection, job, held, faults) for job in chain(waiting, more) if _begin(job, begun)]
        _write(connection, held, faults)
    except _StoreFailed as failed:
        _roll_back(connection)
        again = [*begun, *waiting]
        if len(again) == 1:
            return [Settled(again[0], error=failed.error)]
        return [settled for job in again for settled in carry_out(connection, [job], (), faults)]
    except Exception as error:  # nobody may be left waiting, so nothing escapes
        _roll_back(connection)
        return _refused([*begun, *waiting], error, faults)
    return _commit(connection, settled, faults)


class _StoreFailed(Exception):
    """Carries what one job should hear out of a transaction that can no longer be committed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _begin(job: Job[Writing], begun: list[Job[Writing]]) -> bool:
    if not job.outcome.begin():
        return False
    begun.append(job)
    return True


def _run(connection: sqlite3.Connection, job: Job[Writing], held: Held, faults: Faults) -> Settled:
    writing = Writing(connection, faults, held)
    try:
        value = job.work(writing)
    except BaseException as error:  # whatever it is, it belongs to the caller
        _undo(writing, error)
        settled = Settled(job, error=error)
    else:
        _settle(writing)
        settled = Settled(job, value, written=writing.written)
    finally:
        writing.end()
    if not connection.in_transaction:  # some failures make SQLite roll everything back by itself
        raise _StoreFailed(settled.error or faults.unavailable("a transaction ended early"))
    return settled


def _write(connection: sqlite3.Connection, held: Held, faults: Faults) -> None:
    try:
        write(connection, held)
    except sqlite3.Error as error:
        raise _StoreFailed(faults.of(error)) from error


def _commit(connection: sqlite3.Connection, settled: list[Settled], faults: Faults) -> list[Settled]:
    try:
        connection.execute(queries.COMMIT)
    except Exception as error:  # nobody may be left waiting, so nothing escapes
        _roll_back(connection)
        is_unknown = leaves_doubt(error) and not _made_void(connection)
        return [one if one.error else Settled(one.job, error=_told(error, faults, is_unknown)) for one in settled]
    return settled


def _made_void(connection: sqlite3.Connection) -> bool:
    """Returns whether a commit that failed is certain never to come back.

    When only the last step failed, all of it may be in the journal already, unseen until a crash: then recovery would
    take it for a commit. That it cannot be seen now says nothing. But the next commit takes its place in the journal,
    so one that changes nothing makes it void. This connection stays open meanwhile, and so nobody recovers.
    """
    try:
        connection.execute(queries.BEGIN_WRITING)
        connection.execute(f"{queries.USER_VERSION} = {number(connection, queries.USER_VERSION)}")
        connection.execute(queries.COMMIT)
    except sqlite3.Error:
        _roll_back(connection)
        return False
    return True


def _undo(writing: Writing, error: BaseException) -> None:
    if writing.failure is not None:
        raise _StoreFailed(error)
    try:
        writing.undo()
    except StorageError:
        raise _StoreFailed(error) from error


def _settle(writing: Writing) -> None:
    try:
        writing.settle()
    except StorageError as error:
        raise _StoreFailed(error) from error


def _refused(jobs: Iterable[Job[Writing]], cause: Exception, faults: Faults) -> list[Settled]:
    return [Settled(job, error=_told(cause, faults)) for job in jobs]


def _told(cause: Exception, faults: Faults, is_unknown: bool = False) -> StorageError:
    """Returns what one job hears; an error of its own, because each caller adds its traceback."""
    error: StorageError
    if is_unknown:
        error = faults.uncertain(cause)
    elif isinstance(cause, sqlite3.Error):
        error = faults.of(cause)
    else:
        error = faults.unavailable(type(cause).__name__)
    error.__cause__ = cause
    return error


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # the writer looks whether the connection is still good
        if connection.in_transaction:
            connection.execute(queries.ROLLBACK)
