"""Gives a first-generation session a log, when it is first continued here. Its documents keep their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from opencode_core.model.codec import decode_session
from opencode_core.model.event.conversation import MessageImported
from opencode_core.model.event.session import SessionImported
from opencode_core.model.rows import (
    MESSAGES,
    PARTS,
    SESSION_LISTS,
    SESSION_PLACES,
    SESSIONS,
    list_keys,
)
from opencode_core.storage.writer import Writer


def adopt(writer: Writer, session: str, *, at: int) -> None:
    """Records everything that a session without a log consists of; one that has a log, or is not there, is left alone.

    Raises:
        MessageDecodeError: One of its documents does not fit.
    """
    place = writer.rows.read(SESSION_PLACES, (session,))
    if place is None or writer.head(session) >= 0:
        return
    document = cast("Mapping[str, Any]", writer.rows.get(SESSIONS, (cast("str", place["project"]), session)))
    found = decode_session(document, session=session)
    for key in list_keys(session, found.project, found.directory, found.parent, found.time.created):
        writer.rows.delete(SESSION_LISTS, key)
    writer.rows.delete(SESSION_PLACES, (session,))
    writer.append(SessionImported(session=session, at=at, document=document))
    for key, message in writer.rows.scan(MESSAGES, (session,)):
        id = str(key[1])
        parts = tuple(cast("Mapping[str, Any]", part) for _, part in writer.rows.scan(PARTS, (id,)))
        writer.append(
            MessageImported(
                session=session, at=at, message=id, document=cast("Mapping[str, Any]", message), parts=parts
            )
        )
