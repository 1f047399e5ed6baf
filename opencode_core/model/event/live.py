"""What is told while it happens and never stored: deltas, and which rows changed. Live-only.

``SessionAppeared`` to ``PartDeleted`` are derived from each commit, for those who keep a picture of the rows.
"""

from __future__ import annotations

from typing import Literal

import attrs

from opencode_core.model.event.base import Event
from opencode_core.model.fault import Fault
from opencode_core.model.json import JSON


@attrs.frozen(kw_only=True)
class LiveEvent(Event):
    """Something about a session that nobody stores."""

    session: str


@attrs.frozen(kw_only=True)
class PartDelta(LiveEvent):
    """A piece of a text, a thought or a tool input arrived."""

    message: str
    part: str
    field: Literal["text", "reasoning", "input"] = "text"
    delta: str


@attrs.frozen(kw_only=True)
class CompactionDelta(LiveEvent):
    """A piece of a summary arrived."""

    message: str
    delta: str


@attrs.frozen(kw_only=True)
class SessionStatus(LiveEvent):
    """A session began to work, waits to try again, or is idle.

    Attributes:
        attempt: Which attempt comes next, while it waits.
        problem: Why the last one failed.
        next_at: When the next one comes, in milliseconds since 1970.
    """

    status: Literal["busy", "retry", "idle"]
    attempt: int = 0
    problem: str = ""
    next_at: int = 0


@attrs.frozen(kw_only=True)
class SessionErrored(LiveEvent):
    """Something went wrong in a session."""

    error: Fault


@attrs.frozen(kw_only=True)
class SessionAppeared(LiveEvent):
    """A session is new; this is its document."""

    document: JSON


@attrs.frozen(kw_only=True)
class SessionUpdated(LiveEvent):
    """A session changed; this is its document now."""

    document: JSON


@attrs.frozen(kw_only=True)
class SessionDeleted(LiveEvent):
    """A session is gone, with everything in it."""


@attrs.frozen(kw_only=True)
class SessionDiffUpdated(LiveEvent):
    """What a session changed in the files is other than before."""

    document: JSON


@attrs.frozen(kw_only=True)
class MessageUpdated(LiveEvent):
    """A message is new or changed; this is its document now."""

    message: str
    document: JSON


@attrs.frozen(kw_only=True)
class MessageDeleted(LiveEvent):
    """A message is gone."""

    message: str


@attrs.frozen(kw_only=True)
class PartUpdated(LiveEvent):
    """A part is new or changed; this is its document now. What streams into it comes as `PartDelta`."""

    message: str
    part: str
    document: JSON


@attrs.frozen(kw_only=True)
class PartDeleted(LiveEvent):
    """A part is gone."""

    message: str
    part: str
