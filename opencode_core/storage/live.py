"""Makes the bus on which events are told as they happen. Records nothing, and is cheap to import."""

from __future__ import annotations

from opencode_core.bus import Bus
from opencode_core.model.event.base import Event, Recorded


def event_bus() -> Bus[Event]:
    """Makes a bus on which a durable event can be chosen by its own type as well as by `Recorded`."""
    return Bus(inside=lambda event: event.event if isinstance(event, Recorded) else event)
