"""What the work of a transaction is handed: the files, with what is not in them yet laid over. Locks nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

import attrs

from plugin_sdk.storage import (
    JSON,
    Key,
    StorageDamagedError,
    StorageError,
    TransactionEndedError,
    check_table,
    decode_key,
    encode_key,
    key_range,
)
from plugins_builtin.storage_jsonfiles import listing
from plugins_builtin.storage_jsonfiles.changes import Change, Overlay
from plugins_builtin.storage_jsonfiles.files import Files, Names
from plugins_builtin.storage_jsonfiles.names import path_of_key
from plugins_builtin.storage_jsonfiles.text import TooDeepError, from_bytes, to_bytes


@attrs.define(eq=False, repr=False)
class Snapshot:
    """A `ReadTransaction`, valid until `end`."""

    _files: Files
    _below: Overlay
    _known: dict[Names, list[listing.Found]] = attrs.field(init=False, factory=dict)
    _ended: bool = attrs.field(init=False, default=False)

    def get(self, table: str, key: Key) -> JSON:
        """Returns the document, or None."""
        self._use(table)
        encoded = encode_key(key)
        return self._document(path_of_key(table, key), self._change(table, encoded))

    def scan(
        self,
        table: str,
        prefix: Key = (),
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[tuple[Key, JSON]]:
        """Yields the documents whose keys begin with the prefix, in key order."""
        self._use(table)
        if limit is not None and limit < 0:
            raise ValueError(f"The limit {limit} is negative.")
        key_range(prefix)
        found = self._found(table, prefix, None if after is None else encode_key(after), reverse=reverse)
        return self._documents(found, limit)

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables in which there is something, sorted."""
        self._use("any")
        names = {*listing.tables(self._files), *self._overlaid_tables()}
        return sorted(name for name in names if name and self._has_any(name))

    def end(self) -> None:
        """Makes every later use a `TransactionEndedError`."""
        self._ended = True

    def _use(self, table: str) -> None:
        if self._ended:
            raise TransactionEndedError
        check_table(table)

    def _change(self, table: str, encoded: bytes) -> Change | None:
        return self._below.get(table, {}).get(encoded)

    def _changes(self, table: str) -> dict[bytes, Change]:
        return self._below.get(table, {})

    def _overlaid_tables(self) -> set[str]:
        return set(self._below)

    def _has_any(self, table: str) -> bool:
        found = self._found(table, (), None, reverse=False)
        return any(change is None or change.content is not None for _, _, change in found)

    def _found(
        self, table: str, prefix: Key, after: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, Names, Change | None]]:
        low, high = key_range(prefix)
        changed = [
            (encoded, change.path, change)
            for encoded, change in self._changes(table).items()
            if low <= encoded < high and (after is None or (encoded < after if reverse else encoded > after))
        ]
        changed.sort(key=lambda entry: entry[0], reverse=reverse)
        stored = listing.keys(self._files, table, prefix, after=after, reverse=reverse, known=self._known)
        files = ((encoded, names, None) for encoded, names in stored)
        # Of two with one key, the change comes first, and the file is left out.
        return _once(heapq.merge(changed, files, key=lambda entry: entry[0], reverse=reverse))

    def _documents(
        self, found: Iterator[tuple[bytes, Names, Change | None]], limit: int | None
    ) -> Iterator[tuple[Key, JSON]]:
        def documents() -> Iterator[tuple[Key, JSON]]:
            for encoded, names, change in found:
                if self._ended:
                    raise TransactionEndedError
                document = self._document(names, change)
                if document is not None:
                    yield decode_key(encoded), document

        return islice(documents(), limit)

    def _document(self, names: Names, change: Change | None) -> JSON:
        content = self._files.read(names) if change is None else change.content
        if content is None:
            return None
        try:
            return from_bytes(content)
        except TooDeepError as error:
            raise StorageError(
                f"The file '{self._files.shown(names)}' is nested too deeply to be read.",
                "Read it from a function that is not called so deeply itself, or make it flatter.",
            ) from error
        except ValueError as error:
            # What the file says stays out of the message: it may be private.
            raise StorageDamagedError(
                f"The file '{self._files.shown(names)}' is not JSON ({type(error).__name__}).",
                "Restore it from a backup, or move it away.",
            ) from error


@attrs.define(eq=False, repr=False)
class Writing(Snapshot):
    """A `Transaction` that keeps what it writes for whoever commits it."""

    written: Overlay = attrs.field(init=False, factory=dict)

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document, replacing the one that is there."""
        self._use(table)
        self._write(Change(table, encode_key(key), to_bytes(document)))

    def delete(self, table: str, key: Key) -> None:
        """Removes a document; a missing one is fine."""
        self._use(table)
        self._write(Change(table, encode_key(key), None))

    def _write(self, change: Change) -> None:
        self._files.has(change.path)  # what cannot be applied must not be committed
        self.written.setdefault(change.table, {})[change.encoded] = change

    def _change(self, table: str, encoded: bytes) -> Change | None:
        return self.written.get(table, {}).get(encoded) or super()._change(table, encoded)

    def _changes(self, table: str) -> dict[bytes, Change]:
        below, own = self._below.get(table, {}), self.written.get(table, {})
        return {**below, **own} if below and own else own or below

    def _overlaid_tables(self) -> set[str]:
        return {*self._below, *self.written}


def _once(
    found: Iterator[tuple[bytes, Names, Change | None]],
) -> Iterator[tuple[bytes, Names, Change | None]]:
    last = b""
    for entry in found:
        if entry[0] != last:
            last = entry[0]
            yield entry
