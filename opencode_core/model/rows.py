"""Names the tables that sessions are projected into, and collects changes to them. Stores nothing.

``session``, ``message``, ``part``, ``session_diff`` and ``share`` have the keys of the first generation. The others are
this project's own: where a session or a message is, and in which order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import attrs

from opencode_core.model.json import JSON
from opencode_core.model.storage import Key

SESSIONS: Final = "session"  # (project, session): the session
MESSAGES: Final = "message"  # (session, message): the message, without its parts
PARTS: Final = "part"  # (message, part): one part
DIFFS: Final = "session_diff"  # (session,): how the files changed
SHARES: Final = "share"  # (session,): what is needed to unshare it

SESSION_PLACES: Final = "session_place"  # (session,): its project, and when it was created
SESSION_LISTS: Final = "session_list"  # (list, whose, minus created, session): every list that the session is in
MESSAGE_PLACES: Final = "message_place"  # (message,): its session, and its sequence or that of its admission
MESSAGE_ORDER: Final = "message_order"  # (session, sequence): the message's id and role
SYSTEM_ORDER: Final = "system_order"  # (session, sequence): the id of a Mid-Conversation System Message
PART_ORDER: Final = "part_order"  # (message, sequence, index): the part's id
FRAGMENTS: Final = "fragment"  # (message, part, offset): a piece of what is still streaming
INBOX: Final = "inbox"  # (session, "pending" or "promoted", admitted): the admitted prompt
EPOCHS: Final = "epoch"  # (session,): the Context Epoch
SNAPSHOTS: Final = "snapshot"  # (session, source): what the source was when it was last admitted
VISITED: Final = "visited"  # (session, digest of the path): a folder that files were read out of
CURSORS: Final = "cursor"  # (session,): the open assistant message, the newest compaction, the last turn

PENDING: Final = "pending"
PROMOTED: Final = "promoted"


class Rows(Protocol):
    """What is read of the rows so far."""

    def get(self, table: str, key: Key) -> JSON:
        """Returns a document, or None."""
        ...

    def scan(
        self, table: str, prefix: Key = (), *, after: Key | None = None, limit: int | None = None, reverse: bool = False
    ) -> Iterable[tuple[Key, JSON]]:
        """Returns documents in key order."""
        ...


class WritableRows(Protocol):
    """Where rows are written."""

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document."""
        ...

    def delete(self, table: str, key: Key) -> None:
        """Removes a document."""
        ...


@attrs.frozen
class Change:
    """One row, as it is now; None for one that is gone."""

    table: str
    key: Key
    document: JSON
    was: JSON = None


@attrs.define(eq=False, repr=False)
class Draft:
    """Rows with changes over them that nobody else sees yet."""

    _rows: Rows
    _changed: dict[tuple[str, Key], JSON] = attrs.field(init=False, factory=dict)
    _read: dict[tuple[str, Key], JSON] = attrs.field(init=False, factory=dict)

    def get(self, table: str, key: Key) -> JSON:
        """Returns a document as it is in the draft, or None."""
        place = table, key
        if place in self._changed:
            return self._changed[place]
        if place not in self._read:
            self._read[place] = self._rows.get(table, key)
        return self._read[place]

    def read(self, table: str, key: Key) -> Mapping[str, JSON] | None:
        """Returns a document that is a mapping, or None."""
        document = self.get(table, key)
        return document if isinstance(document, Mapping) else None

    def put(self, table: str, key: Key, document: JSON) -> None:
        """Writes a document into the draft."""
        self._changed[table, key] = document

    def delete(self, table: str, key: Key) -> None:
        """Takes a document out of the draft."""
        self._changed[table, key] = None

    def scan(
        self, table: str, prefix: Key = (), *, after: Key | None = None, limit: int | None = None, reverse: bool = False
    ) -> list[tuple[Key, JSON]]:
        """Returns documents as they are in the draft, in key order."""
        changed = {
            key: document
            for (name, key), document in self._changed.items()
            if name == table and key[: len(prefix)] == prefix
        }
        if not changed:
            return self._scanned(table, prefix, after, limit, reverse)
        found = {**dict(self._scanned(table, prefix, after, None, reverse)), **changed}
        keys = sorted((key for key in found if _is_behind(key, after, reverse)), key=in_order, reverse=reverse)
        return [(key, found[key]) for key in keys if found[key] is not None][:limit]

    def last(self, table: str, prefix: Key) -> tuple[Key, JSON] | None:
        """Returns the last document below a prefix."""
        return next(iter(self.scan(table, prefix, limit=1, reverse=True)), None)

    def changes(self) -> list[Change]:
        """Returns what is other than before, in the order in which it was first changed."""
        return [
            Change(table, key, document, self._read.get((table, key)))
            for (table, key), document in self._changed.items()
            if document is not None or self._is_gone(table, key)
        ]

    def write(self, rows: WritableRows) -> None:
        """Makes the same changes elsewhere."""
        for (table, key), document in self._changed.items():
            if document is not None:
                rows.put(table, key, document)
            elif self._is_gone(table, key):
                rows.delete(table, key)

    def _is_gone(self, table: str, key: Key) -> bool:
        return (table, key) not in self._read or self._read[table, key] is not None

    def _scanned(
        self, table: str, prefix: Key, after: Key | None, limit: int | None, reverse: bool
    ) -> list[tuple[Key, JSON]]:
        found = list(self._rows.scan(table, prefix, after=after, limit=limit, reverse=reverse))
        for key, document in found:
            self._read.setdefault((table, key), document)
        return found


def _is_behind(key: Key, after: Key | None, reverse: bool) -> bool:
    if after is None:
        return True
    return in_order(key) < in_order(after) if reverse else in_order(key) > in_order(after)


def in_order(key: Key) -> tuple[tuple[bool, int | str], ...]:
    """Returns what sorts as keys do: numbers before texts."""
    return tuple((isinstance(part, str), part) for part in key)


def list_keys(session: str, project: str, directory: str, parent: str | None, created: int) -> list[Key]:
    """Returns the keys of a session in every list that it is in."""
    lists = [("all", ""), ("project", project), ("directory", digest(directory))]
    if parent is not None:
        lists.append(("parent", parent))
    # The newest comes first: so do ids of sessions, which tell apart those of one millisecond.
    return [(name, whose, -created, session) for name, whose in lists]


def digest(text: str) -> str:
    """Returns a short name for a text that may be longer than a key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
