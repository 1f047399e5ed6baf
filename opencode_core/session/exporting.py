"""Turns a session into one JSON document, and such a document into a session. Opens no file.

A session with a log is exported as its events. A first-generation one is exported as the first generation does:
``info``, and ``messages`` of ``info`` and ``parts``; both forms can be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from opencode_core.errors import DivergenceError, EventDecodeError, ForeignAggregateError
from opencode_core.model.codec import EventCodec, decode, encode
from opencode_core.model.event.conversation import MessageImported
from opencode_core.model.event.session import SessionImported
from opencode_core.model.json import JSON
from opencode_core.model.rows import MESSAGES, PARTS, SESSIONS, Rows
from opencode_core.session.reading import find_session, get_session
from opencode_core.storage.envelope import Serialized, deserialize, from_row, serialize
from opencode_core.storage.replaying import replay
from opencode_core.storage.tables import EVENTS
from opencode_core.storage.writer import Writer

FORMAT: Final = "opencode-core/session/1"


def export_session(rows: Rows, session: str, codec: EventCodec) -> dict[str, JSON]:
    """Returns everything that a session is, as JSON.

    Raises:
        SessionNotFoundError: There is none.
        LogError: An event cannot be read.
    """
    found = get_session(rows, session)
    events = [_exported(session, key[1], row, codec) for key, row in rows.scan(EVENTS, (session,))]
    if events:
        return {"format": FORMAT, "session": session, "events": events}
    return export_documents(rows, session, found.project)


def export_documents(rows: Rows, session: str, project: str) -> dict[str, JSON]:
    """Returns the documents of a session, as the first generation exports them."""
    return {
        "info": rows.get(SESSIONS, (project, session)),
        "messages": [
            {"info": row, "parts": [part for _, part in rows.scan(PARTS, (str(key[1]),))]}
            for key, row in rows.scan(MESSAGES, (session,))
        ],
    }


def read_export(document: JSON) -> tuple[str, list[Serialized] | Mapping[str, Any]]:
    """Returns the id of the session in an export, and its events, or the document itself for a first-generation one.

    Raises:
        EventDecodeError: It is not an export.
    """
    try:
        fields = cast("Mapping[str, Any]", document)
        if "format" not in fields:
            return str(fields["info"]["id"]), fields
        if fields["format"] == FORMAT:
            return str(fields["session"]), _events_of(str(fields["session"]), fields["events"])
        if str(fields["format"]).startswith(FORMAT.rpartition("/")[0]):
            raise EventDecodeError("The export was written by another version.", "Use that version, or a newer one.")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise _not_an_export() from error
    raise _not_an_export()


def import_events(writer: Writer, events: list[Serialized], codec: EventCodec) -> None:
    """Records exported events exactly where they stood; a repeat changes nothing.

    Raises:
        LogError: An event cannot be read, or does not fit what is there.
    """
    for event in events:
        replay(writer, deserialize(event, codec), codec, owner=None, strict=False)


def import_documents(writer: Writer, session: str, export: Mapping[str, Any], *, at: int) -> None:
    """Records a first-generation export; one that is there already, exactly, changes nothing.

    Raises:
        DivergenceError: Another session has its id.
        SessionError: It does not fit together.
    """
    there = find_session(writer.rows, session)
    if there is not None:
        if export_documents(writer.rows, session, there.project) == {"messages": [], **export}:
            return
        raise DivergenceError(f"Another session has the id '{session}'.", "Remove that one first, or keep it.")
    writer.append(SessionImported(session=session, at=at, document=export["info"]))
    for message in export.get("messages", ()):
        writer.append(
            MessageImported(
                session=session,
                at=at,
                message=str(message["info"]["id"]),
                document=message["info"],
                parts=tuple(message.get("parts", ())),
            )
        )


def _exported(session: str, sequence: Any, row: JSON, codec: EventCodec) -> JSON:
    return cast("JSON", encode(serialize(from_row(session, sequence, row, codec), codec)))


def _events_of(session: str, events: Any) -> list[Serialized]:
    read = [decode(event, Serialized) for event in events]
    if not read:
        raise ValueError("An export has events.")
    for event in read:
        if event.aggregate != session:
            raise ForeignAggregateError(
                f"The export is of session '{session}', but has an event of '{event.aggregate}' in it.",
                "Import what an export returned, unchanged.",
            )
    return read


def _not_an_export() -> EventDecodeError:
    return EventDecodeError("The document is not an exported session.", "Pass what an export returned, unchanged.")
