"""Compares the rows that are stored for a session with those that its log leads to. Reads no log itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

from opencode_core.model import rows as tables
from opencode_core.model.json import JSON, canonical
from opencode_core.model.rows import in_order
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction
from opencode_core.storage.finding import Finding
from opencode_core.storage.folding import Folded

MOST = 5
"""How many differences of one session are told; more would say the same."""

_ONE_BY_ONE = (tables.SESSIONS, tables.SESSION_LISTS, tables.DIFFS)
"""Under other keys than the session's own, or there before the log was: only what is expected is asked for."""

_OF_SESSIONS = (
    tables.MESSAGES,
    tables.SESSION_PLACES,
    tables.MESSAGE_ORDER,
    tables.SYSTEM_ORDER,
    tables.INBOX,
    tables.EPOCHS,
    tables.SNAPSHOTS,
    tables.VISITED,
    tables.CURSORS,
)
_OF_MESSAGES = (tables.PARTS, tables.PART_ORDER, tables.FRAGMENTS, tables.MESSAGE_PLACES)


def differences(rows: ReadTransaction, session: str, folded: Folded) -> list[Finding]:
    """Returns the first differences, by table and key."""
    found: list[Finding] = []
    more = 0
    for table, stored in _stored(rows, session, folded):
        expected = folded.table(table)
        for key in sorted({*expected, *stored}, key=in_order):
            problem = _difference(table, key, expected.get(key), stored.get(key))
            if problem and len(found) < MOST:
                found.append(Finding(area="rows", session=session, problem=problem))
            elif problem:
                more += 1
    if more:
        found.append(Finding(area="rows", session=session, problem=f"{more} more rows are not what the log leads to."))
    return found


def _stored(rows: ReadTransaction, session: str, folded: Folded) -> Iterator[tuple[str, dict[Key, JSON]]]:
    for table in _ONE_BY_ONE:
        yield table, {key: row for key in folded.table(table) if (row := rows.get(table, key)) is not None}
    messages = {key[1] for key in folded.table(tables.MESSAGES)} | {key[0] for key in folded.table(tables.PARTS)}
    for table in _OF_SESSIONS:
        stored = dict(rows.scan(table, (session,)))
        if table == tables.MESSAGES:
            messages |= {key[1] for key in stored if len(key) == 2}
        yield table, stored
    messages |= {key[0] for key in folded.table(tables.MESSAGE_PLACES)}
    for table in _OF_MESSAGES:
        yield table, {key: row for message in messages for key, row in rows.scan(table, (message,))}


def _difference(table: str, key: Key, expected: JSON, stored: JSON) -> str:
    if stored is None:
        return f"In the table '{table}' the row {key!r} is missing."
    if expected is None:
        return f"In the table '{table}' the row {key!r} should not be there."
    if _text(expected) != _text(stored):
        return f"In the table '{table}' the row {key!r} is not what the log leads to."
    return ""


def _text(document: JSON) -> str:
    return json.dumps(canonical(document), sort_keys=True)
