"""Counts what is in a store, and how large it is. Changes nothing, and shows no content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from opencode_core.ids import PREFIXES
from opencode_core.model import rows as tables
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key, StorageFacts
from opencode_core.ports.storage import ReadTransaction, Storage
from opencode_core.storage.pages import Entry, read_page, size_of, tables_of
from opencode_core.storage.schema import version_in
from opencode_core.storage.tables import EVENTS, HEADS

LARGEST = 5
"""How many of the largest sessions are named."""


@attrs.frozen(kw_only=True)
class Size:
    """How much there is of something: documents, and their bytes with their keys, as text."""

    name: str
    documents: int
    bytes: int


@attrs.frozen(kw_only=True)
class Statistics:
    """What is in a store.

    Attributes:
        facts: What the backend says, with what the store takes up on disk.
        version: The version of the session tables; None when the store is empty.
        tables: How much is in each table.
        sessions: How many sessions there are.
        events: How many events there are.
        bytes_per_event: What one event takes up on average, of the log alone.
        largest: The largest sessions, with everything that belongs to them.
        orphans: What belongs to sessions that are not there any more.
    """

    facts: StorageFacts
    version: int | None
    tables: tuple[Size, ...]
    sessions: int
    events: int
    bytes_per_event: float
    largest: tuple[Size, ...]
    orphans: Size


async def measure(storage: Storage) -> Statistics:
    """Reads everything once, and counts.

    Raises:
        StorageVersionError: The store is newer than what is known here.
        StorageForeignError: It belongs to another program.
        StorageDamagedError: It is an unfinished copy, or broken.
        StorageError: The store failed.
    """
    version = await storage.view(version_in)
    found = _Found()
    for table in await tables_of(storage):
        after: Key | None = None
        while True:
            after, measured = await storage.view(_measurer(table, after))
            found.add(table, measured)
            if after is None:
                break
    return found.summed(await storage.facts(), version)


@attrs.frozen
class _Measured:
    bytes: int
    session: str | None


def _measurer(table: str, after: Key | None) -> Callable[[ReadTransaction], tuple[Key | None, list[_Measured]]]:
    def look(rows: ReadTransaction) -> tuple[Key | None, list[_Measured]]:
        page = read_page(rows, table, after)
        measured = [_Measured(size_of(entry), _session_of(rows, table, entry)) for entry in page]
        return (page[-1].key if page else None), measured

    return look


_BY_SESSION: Final = frozenset(
    {
        *(EVENTS, HEADS, tables.MESSAGES, tables.DIFFS, tables.SHARES, tables.SESSION_PLACES, tables.MESSAGE_ORDER),
        *(tables.SYSTEM_ORDER, tables.INBOX, tables.EPOCHS, tables.SNAPSHOTS, tables.VISITED, tables.CURSORS),
        *("session_share", "todo"),
    }
)


def _session_of(rows: ReadTransaction, table: str, entry: Entry) -> str | None:
    """Returns the session that a row belongs to, whether that is there or not; None for what belongs to none."""
    first, last = str(entry.key[0]), str(entry.key[-1])
    if table in (tables.SESSIONS, tables.SESSION_LISTS):
        return last
    if table == tables.PARTS:
        return str(_field(entry.document, "sessionID"))
    if table == tables.MESSAGE_PLACES:
        return str(_field(entry.document, "session"))
    if table in (tables.PART_ORDER, tables.FRAGMENTS):
        return str(_field(rows.get(tables.MESSAGE_PLACES, (first,)), "session"))
    return first if table in _BY_SESSION else None


@attrs.define(eq=False, repr=False)
class _Found:
    documents: Counter[str] = attrs.field(factory=Counter)
    bytes: Counter[str] = attrs.field(factory=Counter)
    rows_of: Counter[str] = attrs.field(factory=Counter)
    bytes_of: Counter[str] = attrs.field(factory=Counter)
    sessions: set[str] = attrs.field(factory=set)
    logged: Counter[str] = attrs.field(factory=Counter)

    def add(self, table: str, measured: Iterable[_Measured]) -> None:
        for each in measured:
            self.documents[table] += 1
            self.bytes[table] += each.bytes
            if each.session is not None:
                self.rows_of[each.session] += 1
                self.bytes_of[each.session] += each.bytes
                if table == tables.SESSIONS:
                    self.sessions.add(each.session)
                elif table in (EVENTS, HEADS):
                    self.logged[each.session] += 1

    def summed(self, facts: StorageFacts, version: int | None) -> Statistics:
        events = self.documents[EVENTS]
        sizes = [
            Size(name=name, documents=self.rows_of[name], bytes=count) for name, count in self.bytes_of.most_common()
        ]
        gone = [size for size in sizes if size.name not in self.sessions and not self._is_own_log(size)]
        return Statistics(
            facts=facts,
            version=version,
            tables=tuple(
                Size(name=name, documents=self.documents[name], bytes=self.bytes[name])
                for name in sorted(self.documents)
            ),
            sessions=len(self.sessions),
            events=events,
            bytes_per_event=round(self.bytes[EVENTS] / events, 1) if events else 0.0,
            largest=tuple([size for size in sizes if size.name in self.sessions][:LARGEST]),
            orphans=Size(
                name="", documents=sum(size.documents for size in gone), bytes=sum(size.bytes for size in gone)
            ),
        )

    def _is_own_log(self, size: Size) -> bool:
        """Whether this is a log that was never a session's, so that it is not left over either."""
        return not size.name.startswith(f"{PREFIXES['session']}_") and size.documents == self.logged[size.name]


def _field(document: JSON, name: str) -> JSON:
    return document.get(name) if isinstance(document, Mapping) else None
