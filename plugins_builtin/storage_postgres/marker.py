"""Tells what became of a commit whose answer was lost, by a token that every commit leaves. Repeats no commit.

The number of a transaction is no proof: a server that crashed hands out again those that had not reached its disk.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import Literal

import attrs
import psycopg

from plugin_sdk.storage import StorageError
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connecting import dial
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.patience import at_most
from plugins_builtin.storage_postgres.statements import STATUS, Statements

Fate = Literal["committed", "aborted", "unknown"]

_PAUSE = 0.05


@attrs.frozen(kw_only=True)
class Mark:
    """What one commit leaves.

    Attributes:
        name: The row.
        token: What is written there.
    """

    name: str
    token: str


@attrs.define(eq=False, repr=False)
class Marker:
    """The row that is this open store's alone, so that nobody collides there; one thread commits at a time."""

    _address: Address
    _statements: Statements
    _origin: str
    _row: int = attrs.field(init=False, default=0)
    _is_used: bool = attrs.field(init=False, default=False)

    def new_mark(self) -> Mark:
        """Returns what the next commit leaves."""
        self._is_used = True
        return Mark(name=f"{self._prefix}{self._row}", token=secrets.token_hex(16))

    def fate_of(self, mark: Mark, *, number: str, begun: float) -> Fate:
        """Asks on new connections until the server has made up its mind.

        Args:
            mark: What the transaction was to leave.
            number: What the server called it.
            begun: When it began, by the server's clock.
        """
        deadline = time.monotonic() + self._address.timeout
        while True:
            with suppress(StorageError, psycopg.Error):  # the server may be restarting
                with dial(self._address) as connection, at_most(connection, self._address.timeout):
                    fate = self._answer(connection, mark, number=number, begun=begun)
                if fate is not None:
                    return fate
            if time.monotonic() >= deadline:
                self._row += 1  # whoever goes on there must not hold up the next commit
                return "unknown"
            time.sleep(_PAUSE)

    def remove(self, connection: Connection) -> None:
        """Deletes the row; where that fails, it is swept later."""
        if self._is_used:
            with suppress(psycopg.Error), at_most(connection, self._address.timeout):
                connection.execute(self._statements.unmark, (self._prefix,))

    @property
    def _prefix(self) -> str:
        return f"commit:{self._origin}:"

    def _answer(self, connection: Connection, mark: Mark, *, number: str, begun: float) -> Fate | None:
        # First whether it goes on, then what it left: the other way round it could commit in between.
        goes_on = _goes_on(connection, number)
        [(left, is_late)] = connection.execute(self._statements.marked, (mark.name, begun)).fetchall()
        if left is not None and left.endswith(mark.token):
            return "committed"
        if goes_on:
            return None
        return "unknown" if left is None and is_late else "aborted"  # it may have been swept meanwhile


def sweep(connection: Connection, statements: Statements) -> None:
    """Deletes the rows of those that did not close their store; who may only read leaves that to others."""
    with suppress(psycopg.Error):
        connection.execute(statements.sweep)


def _goes_on(connection: Connection, number: str) -> bool:
    try:
        [(status,)] = connection.execute(STATUS, (number,)).fetchall()
    except psycopg.errors.InvalidParameterValue:
        return False  # a number of the future: the server crashed, and has forgotten it
    return bool(status == "in progress")
