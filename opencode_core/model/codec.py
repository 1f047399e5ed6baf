"""Turns events of every version, sessions, messages and parts into JSON and back. Reads and writes nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

import attrs

from opencode_core.errors import EventDecodeError, InvalidEventError, MessageDecodeError, UnknownEventError
from opencode_core.model.converter import CONVERTER, Misfit
from opencode_core.model.event.base import DurableEvent
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.model.json import JSON
from opencode_core.model.message import Message
from opencode_core.model.part import Part
from opencode_core.model.session import Session

T = TypeVar("T")

Upcaster = Callable[[dict[str, JSON]], dict[str, JSON]]
"""Brings the data of an event from one version to the next."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {
    ("context.admitted", 1): dict,  # 2 says which source rendered which stretch
    ("epoch.started", 1): dict,  # 2 knows one reason more
    ("tool.succeeded", 1): dict,  # 2 says which folders were visited
    ("turn.prepared", 1): dict,  # 2 measures the request
}
"""By type and the version that is brought up; there is one for every version that was ever written but the last."""


@attrs.define(eq=False, repr=False, init=False)
class EventCodec:
    """Turns durable events into data and back, whatever version wrote them.

    Args:
        events: The classes, each in its own version; the highest of a type is the one that is written.
        upcasters: How older data become newer, by type and version.
    """

    _latest: dict[str, type[DurableEvent]]
    _upcasters: Mapping[tuple[str, int], Upcaster]
    _readers: dict[type[DurableEvent], Callable[[Any, Any], DurableEvent]]

    def __init__(
        self,
        events: Iterable[type[DurableEvent]] = SESSION_EVENTS,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    ) -> None:
        self._latest = {}
        for event in events:
            known = self._latest.setdefault(event.kind.type, event)
            if known.kind.version < event.kind.version:
                self._latest[event.kind.type] = event
        self._upcasters = upcasters
        self._readers = {}

    def latest(self, type: str) -> type[DurableEvent]:
        """Returns the class of a type, in its newest version.

        Raises:
            UnknownEventError: There is none.
        """
        try:
            return self._latest[type]
        except KeyError:
            raise UnknownEventError(
                f"No event has the type '{type}'.", "Install the plugin or the version that wrote it."
            ) from None

    def encode(self, event: DurableEvent) -> dict[str, JSON]:
        """Returns the data of an event, without the field that says whose log it belongs to.

        Raises:
            UnknownEventError: Its class is not one that this codec would read back.
            InvalidEventError: A field has something in it that could not be read back.
        """
        if self._latest.get(event.kind.type) is not type(event):
            raise UnknownEventError(
                f"The event '{type(event).__name__}' ('{event.kind.type}', version {event.kind.version}) is not known.",
                "Record events of the newest version only, and give the codec every class.",
            )
        try:
            data: dict[str, JSON] = CONVERTER.unstructure(event)
            self._reader(type(event))(data, type(event))
        except Exception as error:
            raise InvalidEventError(
                f"The event '{type(event).__name__}' cannot be recorded: {_why(error)}.",
                "Give its fields what their types say.",
            ) from error
        data.pop(event.kind.aggregate, None)
        return data

    def decode(self, type: str, version: int, data: Mapping[str, JSON], aggregate: str) -> DurableEvent:
        """Returns the event that these data tell of, in its newest version.

        Raises:
            UnknownEventError: There is no such type, or the version is newer than what is known.
            EventDecodeError: The data do not fit.
        """
        cls = self.latest(type)
        try:
            current = data if version == cls.kind.version else self._upcast(cls, type, version, data)
            return self._reader(cls)({**current, cls.kind.aggregate: aggregate}, cls)
        except UnknownEventError:
            raise
        except Exception as error:
            raise EventDecodeError(
                f"The data of an event '{type}' (version {version}) do not fit: {_why(error)}.",
                "Run 'opencode-core storage check'.",
            ) from error

    def _reader(self, cls: type[DurableEvent]) -> Callable[[Any, Any], DurableEvent]:
        if cls not in self._readers:  # asking the converter each time costs as much as reading a small event
            self._readers[cls] = CONVERTER.get_structure_hook(cls)
        return self._readers[cls]

    def _upcast(self, cls: type[DurableEvent], type: str, version: int, data: Mapping[str, JSON]) -> Mapping[str, JSON]:
        newest = cls.kind.version
        if version > newest or version < 1:
            raise UnknownEventError(
                f"An event '{type}' has version {version}, but {newest} is the newest that is known.",
                "Use the version of the program that wrote it, or a newer one.",
            )
        current = dict(data)
        for step in range(version, newest):
            current = self._upcasters[type, step](current)
        return current


def encode(value: object) -> Any:
    """Returns a value as JSON."""
    return CONVERTER.unstructure(value)


def decode_session(document: JSON, *, session: str) -> Session:
    """Returns the session that a document tells of.

    Raises:
        MessageDecodeError: It does not fit.
    """
    return _decoded(document, Session, "session", session, "")


def decode_message(document: JSON, *, session: str, message: str) -> Message:
    """Returns the message that a document tells of.

    Raises:
        MessageDecodeError: It does not fit.
    """
    return _decoded(document, cast("type[Message]", Message), "message", session, message)


def decode_part(document: JSON, *, session: str, message: str) -> Part:
    """Returns the part that a document tells of.

    Raises:
        MessageDecodeError: It does not fit.
    """
    return _decoded(document, cast("type[Part]", Part), "part", session, message)


def decode(document: JSON, cls: type[T]) -> T:
    """Returns the value that JSON tells of; raises what the converter raises when it does not fit."""
    return CONVERTER.structure(document, cls)


def _decoded(document: JSON, cls: type[T], what: str, session: str, message: str) -> T:
    try:
        return CONVERTER.structure(document, cls)
    except Exception as error:
        named = f" of the message '{message}'" if message else ""
        raise MessageDecodeError(
            f"The stored {what}{named} in session '{session}' does not fit: {_why(error)}.",
            "Run 'opencode-core storage check'.",
            session=session,
            message=message,
        ) from error


def _why(error: Exception) -> str:
    """Says what is wrong without repeating what was stored, which may be private."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str) and error.args[0].isidentifier():
        return f"'{error.args[0]}' is missing"
    return str(error) if isinstance(error, Misfit) else type(error).__name__


EVENTS: Final = EventCodec()
"""The codec of the durable events of a session."""
