"""One attempt at a transaction on one connection, in as few round trips as there can be. Tries nothing again.

The first reading takes the begin with it, and the commit travels with the writes. What a transaction of the server is
called is known before its commit is sent, and the commit leaves a mark, so that its fate can be asked for when the
connection is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs
import psycopg

from plugin_sdk.storage import StorageError
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connection import Connection, Row
from plugins_builtin.storage_postgres.faults import connection_lost, is_conflict, is_lost, meaning_of, root_of
from plugins_builtin.storage_postgres.marker import Mark, Marker
from plugins_builtin.storage_postgres.statements import (
    BEGIN,
    BEGIN_READ_ONLY,
    COMMIT,
    NOTIFY,
    NUMBER,
    ROLLBACK,
    Statements,
)
from plugins_builtin.storage_postgres.writes import Writes

_LONGEST_PAYLOAD = 7_999


@attrs.define(eq=False, repr=False)
class Attempt:
    """One transaction of the server.

    Attributes:
        is_read_only: Whether it only reads.
        failure: What went wrong; then nothing that the work returned or raised counts.
        is_conflict: Whether it collided with another transaction.
        is_lost: Whether the connection is gone.
        has_answered: Whether the server answered anything before that.
        mark: What the commit leaves, if it was sent; None without writes.
        number: What the server calls the transaction; empty before it is known.
        begun: When it began, by the server's clock.
    """

    _connection: Connection
    _address: Address
    _statements: Statements
    is_read_only: bool
    failure: StorageError | None = attrs.field(init=False, default=None)
    is_conflict: bool = attrs.field(init=False, default=False)
    is_lost: bool = attrs.field(init=False, default=False)
    has_answered: bool = attrs.field(init=False, default=False)
    mark: Mark | None = attrs.field(init=False, default=None)
    number: str = attrs.field(init=False, default="")
    begun: float = attrs.field(init=False, default=0.0)

    def ask(self, statement: bytes, parameters: Sequence[object]) -> list[Row]:
        """Returns the rows.

        Raises:
            StorageError: The attempt failed.
        """
        if self.failure is not None:
            raise self.failure
        try:
            if self.has_answered:
                return self._execute(statement, parameters).fetchall()
            with _pipeline(self._connection):
                number = self._begin()
                answer = self._execute(statement, parameters)
            self._begun(number)
            return answer.fetchall()
        except psycopg.Error as error:
            raise self._failed(error) from error

    def commit(self, writes: Writes, *, origin: str, marker: Marker) -> None:
        """Sends the writes and makes them durable, with a mark.

        Raises:
            StorageError: The attempt failed.
        """
        kept, deleted, keys = writes.kept(), writes.deleted(), writes.keys()
        if not self.has_answered and not keys:
            return  # neither read nor written
        try:
            if not self.has_answered:
                with _pipeline(self._connection):
                    number = self._begin()
                self._begun(number)
            with _pipeline(self._connection):
                if kept[0]:
                    self._execute(self._statements.put, kept)
                if deleted[0]:
                    self._execute(self._statements.delete, deleted)
                if keys:
                    self._execute(NOTIFY, (self._statements.channel, payload_of(keys, origin=origin)))
                    mark = marker.new_mark()
                    self._execute(self._statements.mark, (mark.name, mark.token))
                    self.mark = mark
                self._execute(COMMIT)
        except psycopg.Error as error:
            raise self._failed(error) from error

    def roll_back(self) -> bool:
        """Ends what was begun; returns whether the connection is still good."""
        if self.is_lost:
            return False
        try:
            if self._connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self._connection.execute(ROLLBACK)
        except psycopg.Error:
            return False
        return True

    def _begin(self) -> psycopg.Cursor[Row] | None:
        self._execute(BEGIN_READ_ONLY if self.is_read_only else BEGIN)
        return None if self.is_read_only else self._execute(NUMBER)

    def _begun(self, number: psycopg.Cursor[Row] | None) -> None:
        self.has_answered = True
        if number is not None:
            [(self.number, self.begun)] = number.fetchall()

    def _execute(self, statement: bytes, parameters: Sequence[object] = ()) -> psycopg.Cursor[Row]:
        return self._connection.execute(statement, parameters, prepare=True, binary=True)

    def _failed(self, error: psycopg.Error) -> StorageError:
        error = root_of(error)
        self.is_lost = is_lost(error, self._connection)
        self.is_conflict = not self.is_lost and is_conflict(error)
        self.failure = connection_lost(self._address) if self.is_lost else meaning_of(error, self._address)
        return self.failure


@contextmanager
def _pipeline(connection: Connection) -> Iterator[None]:
    """Sends what is executed in one go; the first error comes out, and psycopg does not log those behind it."""
    first: psycopg.Error | None = None
    try:
        with connection.pipeline():
            try:
                yield
            except psycopg.Error as error:
                first = error
    except psycopg.Error as error:
        raise first or error from None
    if first is not None:
        raise first


def payload_of(keys: Sequence[tuple[str, tuple[str | int, ...]]], *, origin: str) -> str:
    """Returns how a commit is announced: who wrote, and what, unless that is too much."""
    payload = json.dumps([origin, [[table, *key] for table, key in keys]], ensure_ascii=False, separators=(",", ":"))
    if len(payload) > _LONGEST_PAYLOAD or len(payload.encode()) > _LONGEST_PAYLOAD:
        return json.dumps([origin, None])
    return payload
