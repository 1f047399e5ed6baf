"""Reads a whole store piece by piece, so that neither memory nor a transaction grows with it. Writes nothing."""

from __future__ import annotations

import json
from collections import deque
from typing import TypeAlias

import attrs

from opencode_core.model.json import JSON, canonical
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage

LARGEST = 500
"""Documents in a page."""

HEAVIEST = 4 * 1024 * 1024
"""Characters in a page, but for its last document."""


@attrs.frozen
class Entry:
    """One document with its key, and the text that it is as JSON, by which documents are compared."""

    key: Key
    document: JSON = attrs.field(eq=False)
    text: str


Page: TypeAlias = tuple[Entry, ...]


async def tables_of(storage: Storage) -> tuple[str, ...]:
    """Returns the names of the tables in which there is something, sorted.

    Raises:
        StorageError: The store failed.
    """
    return await storage.view(lambda rows: tuple(rows.tables()))


@attrs.define(eq=False, repr=False)
class Cursor:
    """Reads one table in key order, by pages or one document after the other."""

    _storage: Storage
    _table: str
    _after: Key | None = attrs.field(init=False, default=None)
    _unread: deque[Entry] = attrs.field(init=False, factory=deque)

    async def page(self) -> Page:
        """Returns the next documents; none at the end.

        Raises:
            StorageError: The store failed.
        """
        table, after = self._table, self._after
        page = await self._storage.view(lambda rows: read_page(rows, table, after))
        if page:
            self._after = page[-1].key
        return page

    async def next(self) -> Entry | None:
        """Returns the next document; None at the end.

        Raises:
            StorageError: The store failed.
        """
        if not self._unread:
            self._unread.extend(await self.page())
        return self._unread.popleft() if self._unread else None


def read_page(rows: ReadTransaction, table: str, after: Key | None) -> Page:
    """Returns what comes next behind a key."""
    page: list[Entry] = []
    weight = 0
    for key, document in rows.scan(table, after=after, limit=LARGEST):
        entry = Entry(key, document, text_of(document))
        page.append(entry)
        weight += len(entry.text)
        if weight > HEAVIEST:
            break
    return tuple(page)


def text_of(document: JSON) -> str:
    """Returns a document as JSON, in the order of its keys, with numbers as every store would write them."""
    return json.dumps(canonical(document), ensure_ascii=False, separators=(",", ":"))


def size_of(entry: Entry) -> int:
    """Returns how many bytes a document and its key are, as text."""
    texts = (entry.text, *(part for part in entry.key if isinstance(part, str)))
    numbers = sum(len(str(part)) for part in entry.key if isinstance(part, int))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + numbers
