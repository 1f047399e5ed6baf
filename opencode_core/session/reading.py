"""Reads sessions and messages from the rows of one snapshot. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from opencode_core.errors import SessionNotFoundError
from opencode_core.model.codec import decode_message, decode_part, decode_session
from opencode_core.model.json import JSON
from opencode_core.model.message import AssistantMessage, Entry, SystemMessage, UserMessage
from opencode_core.model.part import CompactionPart, Part
from opencode_core.model.rows import (
    CURSORS,
    EPOCHS,
    FRAGMENTS,
    MESSAGE_ORDER,
    MESSAGE_PLACES,
    MESSAGES,
    PART_ORDER,
    PARTS,
    SESSION_PLACES,
    SESSIONS,
    SYSTEM_ORDER,
    Rows,
)
from opencode_core.model.session import Session
from opencode_core.model.storage import Key


def find_session(rows: Rows, session: str) -> Session | None:
    """Returns a session, or None.

    Raises:
        MessageDecodeError: Its row does not fit.
    """
    place = rows.get(SESSION_PLACES, (session,))
    if place is None:
        return None
    project = cast("Mapping[str, Any]", place)["project"]
    document = rows.get(SESSIONS, (project, session))
    # A program of the first generation may have deleted the document, and knows no places.
    return None if document is None else decode_session(document, session=session)


def get_session(rows: Rows, session: str) -> Session:
    """Returns a session.

    Raises:
        SessionNotFoundError: There is none.
        MessageDecodeError: Its row does not fit.
    """
    found = find_session(rows, session)
    if found is None:
        raise SessionNotFoundError(session)
    return found


def message_keys(
    rows: Rows, session: str, *, after: str | None = None, limit: int | None = None, reverse: bool = False
) -> list[tuple[int | None, str]]:
    """Returns the places and ids of messages in their order, behind a message if one is given.

    A first-generation session that was never continued here has no places; its ids are its order. A message that is
    not there has nothing behind it.
    """
    if next(iter(rows.scan(MESSAGE_ORDER, (session,), limit=1)), None) is None:
        anchor: Key | None = None if after is None else (session, after)
        if anchor is not None and rows.get(MESSAGES, anchor) is None:
            return []
        found = rows.scan(MESSAGES, (session,), after=anchor, limit=limit, reverse=reverse)
        return [(None, str(key[1])) for key, _ in found]
    place: Key | None = None
    if after is not None:
        known = cast("Mapping[str, Any] | None", rows.get(MESSAGE_PLACES, (after,)))
        if known is None or known["session"] != session or "sequence" not in known:
            return []
        place = (session, known["sequence"])
    return _ordered(rows.scan(MESSAGE_ORDER, (session,), after=place, limit=limit, reverse=reverse))


def read_entries(rows: Rows, session: str, places: Iterable[tuple[int | None, str]]) -> list[Entry]:
    """Returns messages with their parts; one whose document is gone is left out.

    Raises:
        MessageDecodeError: A row does not fit.
    """
    return [
        Entry(
            sequence=sequence,
            message=decode_message(document, session=session, message=message),
            parts=tuple(read_parts(rows, session, message)),
        )
        for sequence, message in places
        if (document := rows.get(MESSAGES, (session, message))) is not None
    ]


def read_parts(rows: Rows, session: str, message: str) -> Iterator[Part]:
    """Yields the parts of a message in their order.

    Raises:
        MessageDecodeError: A row does not fit.
    """
    for document in part_documents(rows, message):
        yield decode_part(document, session=session, message=message)


def part_documents(rows: Rows, message: str) -> list[Mapping[str, JSON]]:
    """Returns the documents of a message's parts in their order, with what has streamed into those that are open."""
    found = {str(key[1]): cast("Mapping[str, JSON]", document) for key, document in rows.scan(PARTS, (message,))}
    order = [str(cast("Mapping[str, Any]", row)["id"]) for _, row in rows.scan(PART_ORDER, (message,))]
    ids = [*order, *(id for id in found if id not in set(order))]
    return [_with_fragments(rows, message, id, found[id]) for id in ids if id in found]


def _with_fragments(rows: Rows, message: str, part: str, document: Mapping[str, Any]) -> Mapping[str, JSON]:
    """What streams is kept beside its part until it ends; if it never ended, that is all there is."""
    time, state = document.get("time"), document.get("state")
    is_open_text = document.get("type") in ("text", "reasoning") and isinstance(time, Mapping) and "end" not in time
    if not is_open_text and not (isinstance(state, Mapping) and state.get("status") == "pending"):
        return document
    streamed = "".join(str(piece) for _, piece in rows.scan(FRAGMENTS, (message, part)))
    if not streamed:
        return document
    return {**document, "text": streamed} if is_open_text else {**document, "state": {**(state or {}), "raw": streamed}}


def read_context(rows: Rows, session: str) -> list[Entry]:
    """Returns the messages that the model is shown: from the newest compaction on, without folded system messages.

    System messages that are newer than the baseline stay, also when they precede the compaction.

    Raises:
        MessageDecodeError: A row does not fit.
    """
    cursor = cast("Mapping[str, Any]", rows.get(CURSORS, (session,)) or {})
    epoch = cast("Mapping[str, Any] | None", rows.get(EPOCHS, (session,)))
    compaction = cast("int | None", cursor.get("compaction"))
    since = -1 if epoch is None else cast("int", epoch["since"])
    if compaction is None:
        shown = _since_summary(read_entries(rows, session, message_keys(rows, session)))
        return [entry for entry in shown if not _is_folded(entry, since)]
    after: Key = (session, compaction - 1)
    chosen = _ordered(rows.scan(MESSAGE_ORDER, (session,), after=after))
    if epoch is not None:
        early = _ordered(rows.scan(SYSTEM_ORDER, (session,), after=(session, since)))
        chosen = [place for place in early if cast("int", place[0]) < compaction] + chosen
    return [entry for entry in read_entries(rows, session, chosen) if not _is_folded(entry, since)]


def _ordered(found: Iterable[tuple[Key, JSON]]) -> list[tuple[int | None, str]]:
    return [(cast("int", key[1]), str(cast("Mapping[str, Any]", row)["id"])) for key, row in found]


def _is_folded(entry: Entry, since: int) -> bool:
    return isinstance(entry.message, SystemMessage) and entry.sequence is not None and entry.sequence <= since


def _since_summary(entries: list[Entry]) -> list[Entry]:
    """Cuts at the newest first-generation compaction: a request whose summary is complete."""
    summarized = {
        entry.message.parent
        for entry in entries
        if isinstance(entry.message, AssistantMessage) and entry.message.summary and entry.message.finish
    }
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if (
            isinstance(entry.message, UserMessage)
            and entry.message.id in summarized
            and any(isinstance(part, CompactionPart) for part in entry.parts)
        ):
            return entries[index:]
    return entries
