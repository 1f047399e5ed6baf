"""Turns a session into one JSON document, and such a document into a session. Opens no file.

A session with a log is exported as its events. A first-generation one is exported as the first generation does:
``info``, and ``messages`` of ``info`` and ``parts``; both forms can be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from opencode_core.errors import EventDecodeError
from opencode_core.model.codec import EventCodec, decode, encode
from opencode_core.model.event.conversation import MessageImported
from opencode_core.model.event.session import SessionImported
from opencode_core.model.json import JSON
from opencode_core.model.rows import MESSAGES, PARTS, SESSIONS, Rows
from opencode_core.session.reading import get_session
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
    return {
        "info": rows.get(SESSIONS, (found.project, session)),
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
            return str(fields["session"]), [_read(event) for event in fields["events"]]
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
    """Records a first-generation export."""
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


def _read(event: Any) -> Serialized:
    return decode(event, Serialized)


def _not_an_export() -> EventDecodeError:
    return EventDecodeError("The document is not an exported session.", "Pass what an export returned, unchanged.")
