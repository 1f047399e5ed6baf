"""What the work of a caller reads and writes through. Begins, commits and rolls back nothing but its own savepoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import attrs

from plugin_sdk.storage import (
    JSON,
    Key,
    StorageError,
    TransactionEndedError,
    check_table,
    decode_document,
    decode_documents,
    decode_key,
    encode_document,
    encode_key,
)
from plugins_builtin.storage_sqlite import queries
from plugins_builtin.storage_sqlite.faults import Faults

_CHUNK = 256

Held: TypeAlias = dict[tuple[str, bytes], str | None]
"""Writes that are not carried out yet, by table and encoded key; None for a deletion."""


@attrs.define(eq=False, repr=False)
class Reading:
    """A snapshot, on a connection in which a transaction was begun."""

    _connection: sqlite3.Connection
    _faults: Faults
    _ended: bool = attrs.field(init=False, default=False)
    _open: list[sqlite3.Cursor] = attrs.field(init=False, factory=list)

    def get(self, table: str, key: Key) -> JSON:
        """See the port."""
        self._check(table)
        return self._stored(table, encode_key(key))

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        """See the port."""
        self._check(table)
        if limit is not None and limit < 0:
            raise ValueError(f"The limit of a scan is {limit}; use 0 or more, or None.")
        wanted = queries.bounds(table, prefix, after=after, limit=limit, reverse=reverse)
        cursor = self._execute(queries.SCAN_BACK if reverse else queries.SCAN, wanted)
        return self._documents(cursor, prefix)

    def tables(self) -> Sequence[str]:
        """See the port."""
        if self._ended:
            raise TransactionEndedError
        return [name for (name,) in self.rows(queries.COLLECTIONS)]

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Returns what a statement of this backend's own finds.

        Raises:
            StorageError: The store failed.
        """
        return self._fetched(self._execute(sql, parameters))

    def end(self) -> None:
        """Refuses all further use, and lets go of the snapshot."""
        self._ended = True
        for cursor in self._open:
            cursor.close()

    def _check(self, table: str) -> None:
        if self._ended:
            raise TransactionEndedError
        check_table(table)

    def _stored(self, table: str, key: bytes) -> JSON:
        try:
            found = self._connection.execute(queries.GET, (table, key)).fetchone()
        except sqlite3.Error as error:
            raise self._faults.of(error) from error
        return None if found is None else decode_document(found[0])

    def _documents(self, cursor: sqlite3.Cursor, prefix: Key) -> Iterator[tuple[Key, JSON]]:
        """Yields what a scan finds; a snapshot does not change, so no more is read than is asked for."""
        self._open.append(cursor)
        return self._decoded(iter(lambda: self._fetched(cursor, _CHUNK), []), prefix)

    def _decoded(self, chunks: Iterator[list[tuple[bytes, str]]], prefix: Key) -> Iterator[tuple[Key, JSON]]:
        known = encode_key(prefix) if prefix else b""
        start, first = len(known), decode_key(known)
        for rows in chunks:
            try:
                keys = [first + decode_key(key[start:]) for key, _ in rows]
            except ValueError as error:
                raise self._faults.damaged(f"a key in it cannot be read ({error})") from error
            yield from zip(keys, decode_documents([body for _, body in rows]), strict=True)

    def _execute(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, parameters)
        except sqlite3.Error as error:
            raise self._faults.of(error) from error

    def _fetched(self, cursor: sqlite3.Cursor, size: int | None = None) -> list[Any]:
        if self._ended:
            raise TransactionEndedError
        try:
            return cursor.fetchall() if size is None else cursor.fetchmany(size)
        except sqlite3.Error as error:
            raise self._faults.of(error) from error


@attrs.define(eq=False, repr=False)
class Writing(Reading):
    """A transaction that keeps its writes to itself until they are needed, and then writes them in bulk.

    So a job that fails has usually written nothing, and needs no savepoint. What succeeds is added to what its group
    wrote before, and the whole group is written at once.

    Attributes:
        written: What it wrote or deleted, for those who wait for changes.
        failure: Why its writes could not be carried out; then everything around it has to be rolled back.
    """

    _group: Held
    written: list[tuple[str, Key]] = attrs.field(init=False, factory=list)
    failure: StorageError | None = attrs.field(init=False, default=None)
    _held: Held = attrs.field(init=False, factory=dict)
    _saved: bool = attrs.field(init=False, default=False)

    def get(self, table: str, key: Key) -> JSON:
        """See the port."""
        self._check(table)
        place = (table, encode_key(key))
        for held in (self._held, self._group):
            if place in held:
                body = held[place]
                return None if body is None else decode_document(body)
        return self._stored(*place)

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        """See the port."""
        self._write_midway()
        return Reading.scan(self, table, prefix, after=after, limit=limit, reverse=reverse)

    def tables(self) -> Sequence[str]:
        """See the port."""
        self._write_midway()
        return Reading.tables(self)

    def put(self, table: str, key: Key, document: JSON) -> None:
        """See the port."""
        self._check(table)
        self._held[table, encode_key(key)] = encode_document(document)
        self.written.append((table, key))

    def delete(self, table: str, key: Key) -> None:
        """See the port."""
        self._check(table)
        self._held[table, encode_key(key)] = None
        self.written.append((table, key))

    def settle(self) -> None:
        """Adds what is still held to what the group wrote, after the work.

        Raises:
            StorageError: What it wrote before could not be written.
        """
        if self.failure is not None:  # the work caught it; but what it wrote is not all there
            raise self.failure
        if self._saved:
            self._execute(queries.RELEASE)
        self._group.update(self._held)

    def undo(self) -> None:
        """Takes back what was written, after the work raised.

        Raises:
            StorageError: It could not be taken back.
        """
        self._held.clear()
        if self._saved:
            self._execute(queries.ROLLBACK_TO_SAVEPOINT)
            self._execute(queries.RELEASE)

    def _documents(self, cursor: sqlite3.Cursor, prefix: Key) -> Iterator[tuple[Key, JSON]]:
        """Yields what a scan finds; all of it is read now, because what the work writes next must not show."""
        return self._decoded(iter([self._fetched(cursor)]), prefix)

    def _write_midway(self) -> None:
        if self._ended:
            return
        if self._group:
            self._write(self._group)
        if self._held:
            if not self._saved:
                self._execute(queries.SAVEPOINT)
                self._saved = True
            self._write(self._held)

    def _write(self, held: Held) -> None:
        try:
            write(self._connection, held)
        except sqlite3.Error as error:
            self.failure = self._faults.of(error)
            raise self.failure from error


def write(connection: sqlite3.Connection, held: Held) -> None:
    """Carries out writes that were held back, and forgets them; raises what SQLite raises."""
    put = [(table, key, body) for (table, key), body in held.items() if body is not None]
    deleted = [place for place, body in held.items() if body is None]
    held.clear()
    if put:
        connection.executemany(queries.PUT, put)
    if deleted:
        connection.executemany(queries.DELETE, deleted)
