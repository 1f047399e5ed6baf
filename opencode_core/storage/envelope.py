"""Turns recorded events into rows and into what is sent elsewhere, and back. Stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from opencode_core.errors import EventDecodeError, ForeignAggregateError
from opencode_core.model.codec import EventCodec, decode, encode
from opencode_core.model.event.base import EventLocation, Recorded
from opencode_core.model.json import JSON


@attrs.frozen(kw_only=True)
class Serialized:
    """An event as it is exported and sent to another store: nothing but JSON.

    Attributes:
        data: The fields of the event, with the one that says whose log it belongs to.
    """

    aggregate: str
    sequence: int
    id: str
    type: str
    version: int
    data: Mapping[str, JSON]
    location: Mapping[str, JSON] | None = None


def row_of(recorded: Recorded, codec: EventCodec) -> dict[str, JSON]:
    """Returns the row of an event; its key says where it stands and whose log it belongs to.

    Raises:
        UnknownEventError: The codec does not know its class.
    """
    kind = recorded.event.kind
    row: dict[str, JSON] = {
        "id": recorded.id,
        "type": f"{kind.type}/{kind.version}",
        "data": codec.encode(recorded.event),
    }
    if recorded.location is not None:
        row["location"] = encode(recorded.location)
    return row


def from_row(aggregate: str, sequence: int, row: JSON, codec: EventCodec) -> Recorded:
    """Returns the event that a row holds.

    Raises:
        UnknownEventError: Nobody knows its type or version.
        EventDecodeError: The row or its data do not fit.
    """
    fields: Any = row
    try:
        id, data, location = fields["id"], fields["data"], fields.get("location")
        type, version = _kind(fields["type"])
        if location is not None:
            location = _location(location)
    except Exception as error:
        raise EventDecodeError(
            f"The event {sequence} of '{aggregate}' is not one.", "Run 'opencode-core storage check'."
        ) from error
    return Recorded(
        aggregate=aggregate,
        sequence=sequence,
        id=id,
        event=codec.decode(type, version, data, aggregate),
        location=location,
    )


@lru_cache(maxsize=1024)
def _kind(tag: str) -> tuple[str, int]:
    type, _, version = tag.rpartition("/")
    return type, int(version)


def serialize(recorded: Recorded, codec: EventCodec) -> Serialized:
    """Returns an event as it is sent elsewhere.

    Raises:
        UnknownEventError: The codec does not know its class.
    """
    kind = recorded.event.kind
    return Serialized(
        aggregate=recorded.aggregate,
        sequence=recorded.sequence,
        id=recorded.id,
        type=kind.type,
        version=kind.version,
        data={**codec.encode(recorded.event), kind.aggregate: recorded.aggregate},
        location=None if recorded.location is None else encode(recorded.location),
    )


def deserialize(serialized: Serialized, codec: EventCodec) -> Recorded:
    """Returns the event that was sent from elsewhere.

    Raises:
        UnknownEventError: Nobody knows its type or version.
        EventDecodeError: Its data do not fit.
        ForeignAggregateError: It says that it belongs to one log, and its data say another.
    """
    field = codec.latest(serialized.type).kind.aggregate
    inside = serialized.data.get(field)
    if inside != serialized.aggregate:
        raise ForeignAggregateError(
            f"The event '{serialized.id}' was sent for '{serialized.aggregate}', but belongs to '{inside}'.",
            "Replay it into the log that it belongs to.",
        )
    try:
        location = _location(serialized.location)
    except Exception as error:
        raise EventDecodeError(
            f"The location of the event '{serialized.id}' is not one.", "Send it as it was recorded."
        ) from error
    return Recorded(
        aggregate=serialized.aggregate,
        sequence=serialized.sequence,
        id=serialized.id,
        event=codec.decode(serialized.type, serialized.version, serialized.data, serialized.aggregate),
        location=location,
    )


def _location(document: JSON) -> EventLocation | None:
    return None if document is None else decode(document, EventLocation)
