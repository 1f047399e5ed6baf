"""Takes a session away with everything in it: children, messages, parts, inbox, epoch, log. Leaves others alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from opencode_core.errors import MessageDecodeError, SessionNotFoundError
from opencode_core.model.rows import (
    CURSORS,
    DIFFS,
    EPOCHS,
    FRAGMENTS,
    INBOX,
    MESSAGE_ORDER,
    MESSAGE_PLACES,
    MESSAGES,
    PART_ORDER,
    PARTS,
    SESSION_LISTS,
    SESSION_PLACES,
    SESSIONS,
    SHARES,
    SNAPSHOTS,
    SYSTEM_ORDER,
    VISITED,
    Draft,
    list_keys,
)
from opencode_core.model.storage import Key
from opencode_core.session.reading import find_session
from opencode_core.storage.writer import Writer


def remove(writer: Writer, session: str) -> list[str]:
    """Takes a session away, and its children, and theirs; returns all that went. What cannot be read goes too.

    Raises:
        SessionNotFoundError: There is none.
    """
    if writer.rows.get(SESSION_PLACES, (session,)) is None:
        raise SessionNotFoundError(session)
    gone = [session]
    for parent in gone:  # grows while it is gone through
        children = (str(key[3]) for key, _ in writer.rows.scan(SESSION_LISTS, ("parent", parent)))
        gone += [child for child in children if child not in gone]
    for each in reversed(gone):
        _remove_messages(writer, each)
        _remove_session(writer, each)
        writer.remove(each)
    return gone[::-1]


def _remove_messages(writer: Writer, session: str) -> None:
    rows = writer.rows
    for key, _ in rows.scan(MESSAGES, (session,)):
        message = str(key[1])
        rows.delete(MESSAGES, key)
        rows.delete(MESSAGE_PLACES, (message,))
        for table in (PARTS, PART_ORDER, FRAGMENTS):
            for below, _ in rows.scan(table, (message,)):
                rows.delete(table, below)
    for key, row in rows.scan(INBOX, (session,)):
        rows.delete(INBOX, key)
        rows.delete(MESSAGE_PLACES, (cast("Mapping[str, Any]", row)["message"],))


def _remove_session(writer: Writer, session: str) -> None:
    rows = writer.rows
    place = rows.read(SESSION_PLACES, (session,)) or {}
    rows.delete(SESSIONS, (cast("str", place.get("project", "")), session))
    for key in _list_keys(rows, session):
        rows.delete(SESSION_LISTS, key)
    for table in (SESSION_PLACES, EPOCHS, CURSORS, DIFFS, SHARES):
        rows.delete(table, (session,))
    for table in (MESSAGE_ORDER, SYSTEM_ORDER, SNAPSHOTS, VISITED):
        for key, _ in rows.scan(table, (session,)):
            rows.delete(table, key)


def _list_keys(rows: Draft, session: str) -> list[Key]:
    try:
        found = find_session(rows, session)
    except MessageDecodeError:
        found = None
    if found is not None:
        return list_keys(session, found.project, found.directory, found.parent, found.time.created)
    # Nothing says which lists it is in, so look into all.
    return [key for key, _ in rows.scan(SESSION_LISTS) if key[-1] == session]
