"""Takes a session away with everything in it: children, messages, parts, inbox, epoch, log. Leaves others alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

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
    list_keys,
)
from opencode_core.session.reading import get_session
from opencode_core.storage.writer import Writer


def remove(writer: Writer, session: str) -> list[str]:
    """Takes a session away, and its children, and theirs; returns all that went.

    Raises:
        SessionNotFoundError: There is none.
        MessageDecodeError: Its row does not fit.
    """
    gone = []
    for key, _ in writer.rows.scan(SESSION_LISTS, ("parent", session)):
        gone += remove(writer, str(key[3]))
    _remove_messages(writer, session)
    _remove_session(writer, session)
    writer.remove(session)
    return [*gone, session]


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
    found = get_session(rows, session)
    rows.delete(SESSIONS, (found.project, session))
    for key in list_keys(session, found.project, found.directory, found.parent, found.time.created):
        rows.delete(SESSION_LISTS, key)
    for table in (SESSION_PLACES, EPOCHS, CURSORS, DIFFS, SHARES):
        rows.delete(table, (session,))
    for table in (MESSAGE_ORDER, SYSTEM_ORDER, SNAPSHOTS):
        for key, _ in rows.scan(table, (session,)):
            rows.delete(table, key)
