"""Keeps what transactions wrote until it is sent, all at once. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from plugin_sdk.storage import JSON, Key, decode_key, encode_document

Write = tuple[str, Key]


@attrs.define(eq=False, repr=False)
class Writes:
    """What was written on top of the database and of the writes below; a text of None is a deletion."""

    _below: Writes | None = None
    _tables: dict[str, dict[bytes, str | None]] = attrs.field(init=False, factory=dict)

    def put(self, table: str, key: bytes, document: JSON) -> None:
        """Keeps a document, as it is now.

        Raises:
            InvalidDocumentError: It is null, or not JSON.
        """
        text = encode_document(document)
        self._tables.setdefault(table, {})[key] = text

    def delete(self, table: str, key: bytes) -> None:
        """Keeps that a document is gone."""
        self._tables.setdefault(table, {})[key] = None

    def of(self, table: str) -> Mapping[bytes, str | None]:
        """Returns what was written to a table; it may change later."""
        own = self._tables.get(table)
        below = self._below.of(table) if self._below is not None else None
        if own and below:
            return {**below, **own}
        return own or below or {}

    def find(self, table: str, key: bytes) -> tuple[bool, str | None]:
        """Returns whether a document was written or deleted, and its text."""
        own = self._tables.get(table, {})
        if key in own:
            return True, own[key]
        return self._below.find(table, key) if self._below is not None else (False, None)

    def tables(self) -> set[str]:
        """Returns the tables that were written to."""
        return set(self._tables) | (self._below.tables() if self._below is not None else set())

    def absorb(self, above: Writes) -> None:
        """Takes over what a transaction wrote on top."""
        for table, written in above._tables.items():
            self._tables.setdefault(table, {}).update(written)

    def kept(self) -> tuple[list[str], list[bytes], list[str]]:
        """Returns the tables, keys and texts of what is to be put, in one order for everybody, against deadlocks."""
        rows = [(table, key, text) for table, key, text in self._sorted() if text is not None]
        return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]

    def deleted(self) -> tuple[list[str], list[bytes]]:
        """Returns the tables and keys of what is to be deleted, in the same order."""
        rows = [(table, key) for table, key, text in self._sorted() if text is None]
        return [row[0] for row in rows], [row[1] for row in rows]

    def keys(self) -> list[Write]:
        """Returns what was written or deleted."""
        return [(table, decode_key(key)) for table, written in self._tables.items() for key in written]

    def _sorted(self) -> Iterator[tuple[str, bytes, str | None]]:
        for table, written in sorted(self._tables.items()):
            for key in sorted(written):
                yield table, key, written[key]
