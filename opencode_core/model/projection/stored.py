"""Reads and writes whole sessions, messages and parts in a draft, keeping what it does not know. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs

from opencode_core.errors import MessageNotFoundError, MessageReusedError, SessionNotFoundError
from opencode_core.model.codec import decode_message, decode_part, decode_session, encode
from opencode_core.model.converter import json_names
from opencode_core.model.json import JSON
from opencode_core.model.message import Message
from opencode_core.model.part import Part
from opencode_core.model.rows import (
    CURSORS,
    FRAGMENTS,
    MESSAGE_ORDER,
    MESSAGE_PLACES,
    MESSAGES,
    PART_ORDER,
    PARTS,
    SESSION_PLACES,
    SESSIONS,
    SYSTEM_ORDER,
    Draft,
)
from opencode_core.model.session import Session
from opencode_core.model.storage import Key

M = TypeVar("M")

_TAGS = ("type", "status", "role", "name")


def session_key(draft: Draft, session: str) -> Key:
    """Returns the key of a session's row.

    Raises:
        SessionNotFoundError: There is none.
    """
    place = draft.read(SESSION_PLACES, (session,))
    if place is None:
        raise SessionNotFoundError(session)
    return cast("str", place["project"]), session


def read_session(draft: Draft, session: str) -> Session:
    """Returns a session.

    Raises:
        SessionNotFoundError: There is none.
        MessageDecodeError: Its row does not fit.
    """
    return decode_session(draft.get(SESSIONS, session_key(draft, session)), session=session)


def write_session(draft: Draft, session: Session) -> None:
    """Writes a session over its row."""
    key: Key = session.project, session.id
    draft.put(SESSIONS, key, carried(draft.get(SESSIONS, key), session))


def message_sequence(draft: Draft, session: str, message: str) -> int:
    """Returns where a message stands in its session.

    Raises:
        MessageNotFoundError: The session has no such message.
    """
    place = draft.read(MESSAGE_PLACES, (message,))
    if place is None or place["session"] != session or "sequence" not in place:
        raise MessageNotFoundError(
            f"There is no message '{message}' in session '{session}'.", "Check the id.", session=session
        )
    return cast("int", place["sequence"])


def read_message(draft: Draft, session: str, message: str, cls: type[M]) -> M:
    """Returns a message of a kind.

    Raises:
        MessageNotFoundError: The session has no such message of that kind.
        MessageDecodeError: Its row does not fit.
    """
    message_sequence(draft, session, message)
    found = decode_message(draft.get(MESSAGES, (session, message)), session=session, message=message)
    if not isinstance(found, cls):
        raise MessageNotFoundError(
            f"The message '{message}' in session '{session}' is not what the event says.",
            f"It must be of the kind '{cls.__name__}'.",
            session=session,
        )
    return found


def write_message(draft: Draft, message: Message) -> None:
    """Writes a message over its row."""
    key: Key = message.session, message.id
    draft.put(MESSAGES, key, carried(draft.get(MESSAGES, key), message))


def add_message(draft: Draft, sequence: int, message: Message) -> None:
    """Adds a new message at the end.

    Raises:
        MessageReusedError: Its id is taken.
    """
    document = cast("dict[str, JSON]", encode(message))
    add_document(draft, sequence, message.session, message.id, document)


def add_document(draft: Draft, sequence: int, session: str, message: str, document: Mapping[str, JSON]) -> None:
    """Adds the document of a new message at the end.

    Raises:
        MessageReusedError: Its id is taken.
        SessionNotFoundError: There is no such session.
    """
    session_key(draft, session)
    place = draft.read(MESSAGE_PLACES, (message,))
    if place is not None:
        raise MessageReusedError(
            f"The message id '{message}' is already used in session '{place['session']}'.",
            "Make a new id.",
            session=session,
        )
    place_message(draft, sequence, session, message, document)


def place_message(draft: Draft, sequence: int, session: str, message: str, document: Mapping[str, JSON]) -> None:
    """Writes the document of a message, and puts it at its place in the order."""
    role = document["role"]
    draft.put(MESSAGES, (session, message), document)
    draft.put(MESSAGE_PLACES, (message,), {"session": session, "sequence": sequence})
    draft.put(MESSAGE_ORDER, (session, sequence), {"id": message, "role": role})
    if role == "system":
        draft.put(SYSTEM_ORDER, (session, sequence), {"id": message})


def remove_message(draft: Draft, session: str, message: str, sequence: int) -> None:
    """Takes a message out, with its parts."""
    places: tuple[tuple[str, Key], ...] = (
        (MESSAGES, (session, message)),
        (MESSAGE_PLACES, (message,)),
        (MESSAGE_ORDER, (session, sequence)),
        (SYSTEM_ORDER, (session, sequence)),
    )
    for table, key in places:
        if draft.get(table, key) is not None:
            draft.delete(table, key)
    for table in (PARTS, PART_ORDER, FRAGMENTS):
        for below, _ in draft.scan(table, (message,)):
            draft.delete(table, below)


def read_part(draft: Draft, session: str, message: str, part: str) -> Part | None:
    """Returns a part, or None.

    Raises:
        MessageNotFoundError: The session has no such message.
        MessageDecodeError: Its row does not fit.
    """
    message_sequence(draft, session, message)
    document = draft.get(PARTS, (message, part))
    return None if document is None else decode_part(document, session=session, message=message)


def write_part(draft: Draft, part: Part) -> None:
    """Writes a part over its row."""
    key: Key = part.message, part.id
    draft.put(PARTS, key, carried(draft.get(PARTS, key), part))


def add_part(draft: Draft, sequence: int, part: Part, index: int = 0) -> None:
    """Adds a new part at the end of its message."""
    draft.put(PARTS, (part.message, part.id), encode(part))
    draft.put(PART_ORDER, (part.message, sequence, index), {"id": part.id})


def remove_part(draft: Draft, message: str, part: str) -> None:
    """Takes a part out, with what is still streaming into it."""
    draft.delete(PARTS, (message, part))
    drop_fragments(draft, message, part)
    for key, document in draft.scan(PART_ORDER, (message,)):
        if isinstance(document, Mapping) and document["id"] == part:
            draft.delete(PART_ORDER, key)


def drop_fragments(draft: Draft, message: str, part: str) -> None:
    """Takes out what was kept while a part streamed."""
    for key, _ in draft.scan(FRAGMENTS, (message, part)):
        draft.delete(FRAGMENTS, key)


def read_cursor(draft: Draft, session: str) -> dict[str, JSON]:
    """Returns where the conversation stands, to be changed and written again."""
    return dict(draft.read(CURSORS, (session,)) or {})


def move_cursor(draft: Draft, session: str, **moved: JSON) -> None:
    """Changes where the conversation stands; None takes a mark away."""
    before = read_cursor(draft, session)
    after = {name: value for name, value in {**before, **moved}.items() if value is not None}
    if after != before:
        draft.put(CURSORS, (session,), after)


def carried(before: JSON, value: Any) -> JSON:
    """Returns a value's document, with what an earlier document of it had and this program does not know."""
    return _with_unknown(before, encode(value), value)


def _with_unknown(before: JSON, document: JSON, value: Any) -> JSON:
    if not isinstance(before, Mapping) or not isinstance(document, Mapping) or not attrs.has(type(value)):
        return document
    if any(before.get(tag) != document.get(tag) for tag in _TAGS):
        return document  # it is something else now, a call that runs instead of one that waits
    inside = {name: getattr(value, field) for field, name in json_names(type(value)).items()}
    merged = {name: _with_unknown(before.get(name), now, inside.get(name)) for name, now in document.items()}
    return {**merged, **{name: kept for name, kept in before.items() if name not in inside and name not in document}}
