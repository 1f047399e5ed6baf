"""Runs works in a serialisable transaction, again and again until one attempt holds. Knows no event loop."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import psycopg

from plugin_sdk.storage import StorageConflictError, StorageError
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.attempt import Attempt
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.faults import connection_lost, is_lost, meaning_of
from plugins_builtin.storage_postgres.marker import Marker
from plugins_builtin.storage_postgres.pool import Pool
from plugins_builtin.storage_postgres.statements import LOCK, UNLOCK, Statements
from plugins_builtin.storage_postgres.transaction import PostgresReadTransaction, PostgresTransaction
from plugins_builtin.storage_postgres.writes import Write, Writes

Work = Callable[[Any], Any]

_MOST_ATTEMPTS = 100
_MOST_STALE = 2
# Whoever collided takes turns with others that did, for so many seconds; the rest of the world pays nothing.
_TURNS = 1.0


@attrs.frozen
class Result:
    """What one work returned or raised."""

    value: Any = None
    error: BaseException | None = None


@attrs.define(eq=False, repr=False)
class Runner:
    """Runs transactions, each on one connection of the pool, from many threads.

    Attributes:
        origin: Who announces the commits.
    """

    _address: Address
    _statements: Statements
    _pool: Pool
    origin: str
    _marker: Marker
    _turns_until: float = attrs.field(init=False, default=0.0)

    def run(self, works: Sequence[Work], *, read_only: bool = False) -> tuple[list[Result], list[Write]]:
        """Returns the works' results, in one transaction in which each sees what those before it wrote, and the writes.

        Raises:
            StorageError: Nothing was written, unless the error says that this is unknown.
        """
        stale = 0
        for attempts in range(_MOST_ATTEMPTS):
            connection, was_used = self._pool.take()
            attempt = Attempt(connection, self._address, self._statements, read_only)
            takes_turn = attempts > (2 if read_only else 0) or (not read_only and time.monotonic() < self._turns_until)
            try:
                return self._attempted(connection, attempt, works, takes_turn=takes_turn)
            except StorageError as error:
                if attempt.failure is not error:
                    raise
                if attempt.is_lost and was_used and not attempt.has_answered and stale < _MOST_STALE:
                    stale += 1  # it had died in the pool, and so did the others, probably
                    self._pool.empty()
                elif not attempt.is_conflict:
                    raise
                else:
                    self._turns_until = time.monotonic() + _TURNS
                    time.sleep(random.uniform(0, min(0.0002 * 2**attempts, 0.05)))
        raise StorageConflictError(
            f"A transaction on '{self._address.url}' collided with others {_MOST_ATTEMPTS} times.", "Try again later."
        )

    def _attempted(
        self, connection: Connection, attempt: Attempt, works: Sequence[Work], *, takes_turn: bool
    ) -> tuple[list[Result], list[Write]]:
        is_good = False
        try:
            if takes_turn:
                self._take_turn(connection, attempt)
            results, writes = _worked(attempt, self._statements, works)
            self._commit(attempt, writes)
            is_good = True
            return results, writes.keys()
        finally:
            is_good = (is_good or attempt.roll_back()) and not attempt.is_lost
            if is_good and takes_turn:
                is_good = self._end_turn(connection)
            self._pool.give_back(connection) if is_good else connection.close()

    def _commit(self, attempt: Attempt, writes: Writes) -> None:
        try:
            attempt.commit(writes, origin=self.origin, marker=self._marker)
        except StorageError:
            if not attempt.is_lost or attempt.mark is None:
                raise
            fate = self._marker.fate_of(attempt.mark, number=attempt.number, begun=attempt.begun)
            if fate != "committed":
                attempt.failure = connection_lost(self._address, outcome_unknown=fate != "aborted")
                raise attempt.failure from None

    def _take_turn(self, connection: Connection, attempt: Attempt) -> None:
        # Before the transaction begins: its snapshot must not be older than the turn.
        try:
            connection.execute(LOCK, (self._statements.turn_lock,), prepare=True)
        except psycopg.Error as error:
            attempt.is_lost = is_lost(error, connection)
            attempt.failure = connection_lost(self._address) if attempt.is_lost else meaning_of(error, self._address)
            raise attempt.failure from error

    def _end_turn(self, connection: Connection) -> bool:
        try:
            connection.execute(UNLOCK, (self._statements.turn_lock,), prepare=True)
        except psycopg.Error:
            return False
        return True


def _worked(attempt: Attempt, statements: Statements, works: Sequence[Work]) -> tuple[list[Result], Writes]:
    """Runs the works one after the other; what one wrote that raised is forgotten."""
    writes, results = Writes(), []
    kind = PostgresReadTransaction if attempt.is_read_only else PostgresTransaction
    for work in works:
        own = Writes(writes)
        transaction = kind(attempt.ask, statements, own)
        try:
            result = Result(work(transaction))
            writes.absorb(own)
        except BaseException as error:
            result = Result(error=error)
        finally:
            transaction.end()
        if attempt.failure is not None:  # whatever the work made of it
            raise attempt.failure
        results.append(result)
    return results, writes
