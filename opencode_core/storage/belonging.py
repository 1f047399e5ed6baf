"""Finds rows that belong to no session, message or list any more. Removes none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from opencode_core.model import rows as tables
from opencode_core.model.json import JSON
from opencode_core.model.rows import list_keys
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage
from opencode_core.storage.adopting import session_at
from opencode_core.storage.finding import Finding
from opencode_core.storage.pages import Entry, read_page

MOST = 10
"""How many rows of one table are named; the others are counted."""

Judge: TypeAlias = Callable[[ReadTransaction, Entry], str]
"""Says why a row belongs to nothing; empty when it does belong."""


async def find_orphans(storage: Storage) -> list[Finding]:
    """Looks at every row that should belong to another one.

    Raises:
        StorageError: The store failed.
    """
    found: list[Finding] = []
    for table, judge in _JUDGES.items():
        problems: Counter[str] = Counter()
        after: Key | None = None
        while True:
            after, said = await storage.view(_looker(table, judge, after))
            problems.update(said)
            if after is None:
                break
        found += _summed(table, problems)
    return found


def _looker(table: str, judge: Judge, after: Key | None) -> Callable[[ReadTransaction], tuple[Key | None, list[str]]]:
    def look(rows: ReadTransaction) -> tuple[Key | None, list[str]]:
        page = read_page(rows, table, after)
        said = [f"In the table '{table}' the row {entry.key!r} {why}." for entry in page if (why := judge(rows, entry))]
        return (page[-1].key if page else None), said

    return look


def _summed(table: str, problems: Counter[str]) -> list[Finding]:
    named = [Finding(area="orphans", problem=problem) for problem in list(problems)[:MOST]]
    if len(problems) > MOST:
        more = f"In the table '{table}' {len(problems) - MOST} more rows belong to nothing."
        named.append(Finding(area="orphans", problem=more))
    return named


def _session(rows: ReadTransaction, entry: Entry) -> str:
    session = session_at(entry.key, entry.document)
    if isinstance(session, str):
        return "is not a session that can be read"
    place = rows.get(tables.SESSION_PLACES, (session.id,))
    if place is None:
        return "is in no list; run 'opencode-core storage migrate'"
    return "" if _field(place, "project") == session.project else "is listed in another project"


def _place(rows: ReadTransaction, entry: Entry) -> str:
    project = _field(entry.document, "project")
    is_there = isinstance(project, str) and rows.get(tables.SESSIONS, (project, *entry.key)) is not None
    return "" if is_there else "is of a session that is not there"


def _listed(rows: ReadTransaction, entry: Entry) -> str:
    session = entry.key[-1]
    project = _field(rows.get(tables.SESSION_PLACES, (session,)), "project")
    if not isinstance(project, str):
        return "is of a session that is not there"
    found = session_at((project, session), rows.get(tables.SESSIONS, (project, session)))
    if isinstance(found, str):
        return ""  # told where the session is looked at
    keys = list_keys(found.id, found.project, found.directory, found.parent, found.time.created)
    return "" if entry.key in keys else "is of a session that does not belong there"


def _of_session(rows: ReadTransaction, entry: Entry) -> str:
    is_there = rows.get(tables.SESSION_PLACES, entry.key[:1]) is not None
    return "" if is_there else "is of a session that is not there"


def _message_place(rows: ReadTransaction, entry: Entry) -> str:
    session = _field(entry.document, "session")
    if not isinstance(session, str):
        return "is of no session"
    if _field(entry.document, "sequence") is None:
        is_there = rows.get(tables.SESSION_PLACES, (session,)) is not None
    else:
        is_there = rows.get(tables.MESSAGES, (session, *entry.key)) is not None
    return "" if is_there else "is of a message that is not there"


def _part(rows: ReadTransaction, entry: Entry) -> str:
    # A part says itself which session it is of, because messages of the first generation have no place.
    session = _field(entry.document, "sessionID")
    is_there = isinstance(session, str) and rows.get(tables.MESSAGES, (session, entry.key[0])) is not None
    return "" if is_there else "is of a message that is not there"


def _of_message(rows: ReadTransaction, entry: Entry) -> str:
    is_there = rows.get(tables.MESSAGE_PLACES, entry.key[:1]) is not None
    return "" if is_there else "is of a message that is not there"


def _field(document: JSON, name: str) -> JSON:
    return document.get(name) if isinstance(document, Mapping) else None


_JUDGES: Final[Mapping[str, Judge]] = {
    tables.SESSIONS: _session,
    tables.SESSION_PLACES: _place,
    tables.SESSION_LISTS: _listed,
    tables.MESSAGES: _of_session,
    tables.MESSAGE_ORDER: _of_session,
    tables.SYSTEM_ORDER: _of_session,
    tables.INBOX: _of_session,
    tables.EPOCHS: _of_session,
    tables.SNAPSHOTS: _of_session,
    tables.VISITED: _of_session,
    tables.CURSORS: _of_session,
    tables.DIFFS: _of_session,
    tables.MESSAGE_PLACES: _message_place,
    tables.PARTS: _part,
    tables.PART_ORDER: _of_message,
    tables.FRAGMENTS: _of_message,
}
