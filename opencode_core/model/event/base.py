"""What every event is, and what makes one durable. Knows no particular event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from opencode_core.model.json import JSON


@attrs.frozen
class EventKind:
    """What is known of a class of durable events.

    Attributes:
        type: Its name in the log, which never changes.
        version: Which shape of its data the class has; older shapes are brought up to it when they are read.
        public: Whether it is shown to those who follow the session; a private one takes a sequence all the same.
        aggregate: The field that says whose log it belongs to.
    """

    type: str
    version: int = 1
    public: bool = True
    aggregate: str = "session"


@attrs.frozen(kw_only=True)
class Event:
    """The base of everything that is published after a change is visible."""


@attrs.frozen(kw_only=True)
class DurableEvent(Event):
    """A fact that is recorded in a log, in the past tense.

    Attributes:
        at: When it happened, in milliseconds since 1970. Nothing is ordered by this.
        metadata: What the host wants to remember with it.
    """

    kind: ClassVar[EventKind]

    at: int
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class SessionEvent(DurableEvent):
    """A fact of one session."""

    session: str


@attrs.frozen(kw_only=True)
class EventLocation:
    """Where something happened."""

    directory: str
    workspace: str | None = None


@attrs.frozen(kw_only=True)
class Recorded(Event):
    """A durable event at its place in a log.

    Attributes:
        aggregate: Whose log it is, for events of sessions the session's id.
        sequence: Its place; the first is 0, and each next one is one more.
        id: The id that it keeps wherever it is copied.
        event: What happened.
        location: Where, if that was known.
    """

    aggregate: str
    sequence: int
    id: str
    event: DurableEvent
    location: EventLocation | None = None
