"""What the work of a transaction reads and writes: a snapshot, and on top its own writes. Commits nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from plugin_sdk.storage import (
    JSON,
    Key,
    TransactionEndedError,
    check_table,
    decode_document,
    decode_documents,
    decode_key,
    encode_key,
    key_range,
)
from plugins_builtin.storage_postgres.connection import Row
from plugins_builtin.storage_postgres.statements import Statements
from plugins_builtin.storage_postgres.writes import Writes

Ask = Callable[[bytes, Sequence[object]], list[Row]]

_FIRST_PAGE, _PAGE = 128, 512


@attrs.define(eq=False, repr=False)
class PostgresReadTransaction:
    """A snapshot that does not change; nothing is sent before the work has ended, so neither do readings of it."""

    _ask: Ask
    _statements: Statements
    _writes: Writes
    _ended: bool = attrs.field(init=False, default=False)

    def get(self, table: str, key: Key) -> JSON:
        """Returns the document, or None."""
        self._check()
        check_table(table)
        encoded = encode_key(key)
        is_written, text = self._writes.find(table, encoded)
        if not is_written:
            rows = self._ask(self._statements.get, (table, encoded))
            text = rows[0][0] if rows else None
        return None if text is None else decode_document(text)

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        """Yields the documents whose keys begin with the prefix."""
        self._check()
        check_table(table)
        if limit is not None and limit < 0:
            raise ValueError(f"The limit of a scan is {limit}, but there is nothing less than none.")
        low, high = key_range(prefix)
        if after is not None:
            behind = encode_key(after)
            low, high = (low, min(high, behind)) if reverse else (max(low, behind + b"\x00"), high)
        written = {key: text for key, text in self._writes.of(table).items() if low <= key < high}
        return self._scanned(table, _Range(low, high, reverse), written, limit)

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables in which there is something, sorted."""
        self._check()
        there = {row[0] for row in self._ask(self._statements.tables, ())}
        for table in self._writes.tables():
            there.discard(table)
            if next(self.scan(table, limit=1), None) is not None:
                there.add(table)
        return sorted(there)

    def end(self) -> None:
        """Makes every later use an error."""
        self._ended = True

    def _check(self) -> None:
        if self._ended:
            raise TransactionEndedError

    def _scanned(
        self, table: str, range_: _Range, written: Mapping[bytes, str | None], limit: int | None
    ) -> Iterator[tuple[Key, JSON]]:
        left = limit
        for page in self._pages(table, range_, written, limit):
            chosen = page if left is None else page[:left]
            documents = decode_documents([text for _, text in chosen])
            for (key, _), document in zip(chosen, documents, strict=True):
                self._check()
                yield decode_key(key), document
                self._check()
            if left is not None:
                left -= len(chosen)
                if left <= 0:
                    return

    def _pages(
        self, table: str, range_: _Range, written: Mapping[bytes, str | None], limit: int | None
    ) -> Iterator[list[tuple[bytes, str]]]:
        """Yields what is in a range, some at a time, with what was written put in its place."""
        if limit == 0:
            return
        size = min(_FIRST_PAGE if limit is None else limit, _PAGE)
        statement = self._statements.scan_reverse if range_.reverse else self._statements.scan
        while True:
            self._check()
            rows = self._ask(statement, (table, range_.low, range_.high, size)) if range_.low < range_.high else []
            is_last = len(rows) < size
            done, range_ = (range_, range_) if is_last else range_.split_behind(rows[-1][0])
            yield done.merged(rows, written)
            if is_last:
                return
            size = _PAGE


@attrs.define(eq=False, repr=False)
class PostgresTransaction(PostgresReadTransaction):
    """A snapshot that sees its own writes."""

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document."""
        self._check()
        check_table(table)
        self._writes.put(table, encode_key(key), document)

    def delete(self, table: str, key: Key) -> None:
        """Removes a document."""
        self._check()
        check_table(table)
        self._writes.delete(table, encode_key(key))


@attrs.frozen
class _Range:
    """From the low key, to before the high one."""

    low: bytes
    high: bytes
    reverse: bool

    def split_behind(self, key: bytes) -> tuple[_Range, _Range]:
        """Returns what was read when this key was the last, and what is left."""
        if self.reverse:
            return attrs.evolve(self, low=key), attrs.evolve(self, high=key)
        behind = key + b"\x00"
        return attrs.evolve(self, high=behind), attrs.evolve(self, low=behind)

    def merged(self, rows: Sequence[Row], written: Mapping[bytes, str | None]) -> list[tuple[bytes, str]]:
        """Returns the documents of this range in its direction."""
        ours = {key: text for key, text in written.items() if self.low <= key < self.high}
        if not ours:
            return [(row[0], row[1]) for row in rows]
        merged: dict[bytes, str | None] = {**{row[0]: row[1] for row in rows}, **ours}
        return [(key, text) for key in sorted(merged, reverse=self.reverse) if (text := merged[key]) is not None]
