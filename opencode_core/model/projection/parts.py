"""What facts of texts, thoughts and single parts do to their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs

from opencode_core.errors import IllegalTransitionError, MessageNotFoundError
from opencode_core.model.event import conversation as events
from opencode_core.model.json import JSON
from opencode_core.model.part import (
    Moment,
    Part,
    PatchPart,
    PendingTool,
    ReasoningPart,
    RetryPart,
    SnapshotPart,
    Span,
    TextPart,
    ToolPart,
)
from opencode_core.model.projection.stored import (
    add_part,
    drop_fragments,
    read_part,
    remove_part,
    write_part,
)
from opencode_core.model.rows import FRAGMENTS, Draft

P = TypeVar("P", TextPart, ReasoningPart)

_GROWING: dict[type, type] = {
    events.TextGrew: TextPart,
    events.ReasoningGrew: ReasoningPart,
    events.ToolInputGrew: ToolPart,
}


def text_started(draft: Draft, event: events.TextStarted, sequence: int) -> None:
    """There is a text, empty so far."""
    part = TextPart(**_who(event), text="", time=Span(start=event.at), metadata=event.provider_metadata)
    add_new(draft, event, sequence, part)


def reasoning_started(draft: Draft, event: events.ReasoningStarted, sequence: int) -> None:
    """There is a thought, empty so far."""
    part = ReasoningPart(**_who(event), text="", time=Span(start=event.at), metadata=event.provider_metadata)
    add_new(draft, event, sequence, part)


def fragment_grew(draft: Draft, event: events.FragmentGrew, _sequence: int) -> None:
    """What arrived is kept beside the part, which is written when it is complete."""
    part = existing(draft, event)
    if not isinstance(part, _GROWING[type(event)]) or not is_open(part):
        raise IllegalTransitionError(
            f"The part '{event.part}' of the message '{event.message}' cannot grow: it is another kind, or has ended.",
            "Record the pieces of a text before its end.",
            session=event.session,
        )
    last = draft.last(FRAGMENTS, (event.message, event.part))
    length = 0 if last is None else cast("int", last[0][2]) + len(cast("str", last[1]))
    if event.offset != length:
        raise IllegalTransitionError(
            f"A piece of the part '{event.part}' begins at {event.offset}, but {length} characters are there.",
            "Record the pieces of a text in order.",
            session=event.session,
        )
    draft.put(FRAGMENTS, (event.message, event.part, event.offset), event.text)


def text_ended(draft: Draft, event: events.TextEnded, _sequence: int) -> None:
    """The text is complete."""
    part = open_part(draft, event, TextPart)
    assert part.time is not None  # an open text says since when
    _end(draft, part, event, part.time)


def reasoning_ended(draft: Draft, event: events.ReasoningEnded, _sequence: int) -> None:
    """The thought is complete."""
    part = open_part(draft, event, ReasoningPart)
    _end(draft, part, event, part.time)


def snapshot_recorded(draft: Draft, event: events.SnapshotRecorded, sequence: int) -> None:
    """There is a snapshot."""
    add_new(draft, event, sequence, SnapshotPart(**_who(event), snapshot=event.snapshot))


def patch_recorded(draft: Draft, event: events.PatchRecorded, sequence: int) -> None:
    """There is a patch."""
    add_new(draft, event, sequence, PatchPart(**_who(event), hash=event.hash, files=event.files))


def retry_recorded(draft: Draft, event: events.RetryRecorded, sequence: int) -> None:
    """There is a record of the attempt."""
    part = RetryPart(**_who(event), attempt=event.attempt, error=event.error, time=Moment(created=event.at))
    add_new(draft, event, sequence, part)


def part_removed(draft: Draft, event: events.PartRemoved, _sequence: int) -> None:
    """The part is gone."""
    existing(draft, event)
    remove_part(draft, event.message, event.part)


def add_new(draft: Draft, event: events.PartEvent | events.StepEnded, sequence: int, part: Part) -> None:
    """Adds a part that must not be there yet.

    Raises:
        IllegalTransitionError: It is there already.
        MessageNotFoundError: There is no such message.
    """
    if read_part(draft, event.session, event.message, event.part) is not None:
        raise IllegalTransitionError(
            f"The part '{event.part}' of the message '{event.message}' is there already.",
            "Start each part once.",
            session=event.session,
        )
    add_part(draft, sequence, part)


def existing(draft: Draft, event: events.PartEvent) -> Part:
    """Returns a part that must be there.

    Raises:
        MessageNotFoundError: There is no such message or part.
    """
    part = read_part(draft, event.session, event.message, event.part)
    if part is None:
        raise MessageNotFoundError(
            f"There is no part '{event.part}' in the message '{event.message}'.",
            "Start it first.",
            session=event.session,
        )
    return part


def open_part(draft: Draft, event: events.PartEvent, cls: type[P]) -> P:
    """Returns a part of a kind that has not ended.

    Raises:
        MessageNotFoundError: There is no such message or part.
        IllegalTransitionError: It is of another kind, or ended already.
    """
    part = existing(draft, event)
    if not isinstance(part, cls) or not is_open(part):
        raise IllegalTransitionError(
            f"The part '{event.part}' of the message '{event.message}' cannot end: it is another kind, or has ended.",
            "End each part once, as what it started.",
            session=event.session,
        )
    return part


def is_open(part: Part) -> bool:
    """Whether more of it is expected; a text that never streamed says nothing about its time."""
    if isinstance(part, ToolPart):
        return isinstance(part.state, PendingTool)
    return isinstance(part, (TextPart, ReasoningPart)) and part.time is not None and part.time.end is None


def _end(draft: Draft, part: TextPart | ReasoningPart, event: Any, time: Span) -> None:
    metadata: Mapping[str, JSON] | None = part.metadata if event.provider_metadata is None else event.provider_metadata
    ended = attrs.evolve(part, text=event.text, time=attrs.evolve(time, end=event.at), metadata=metadata)
    write_part(draft, ended)
    drop_fragments(draft, event.message, event.part)


def _who(event: events.PartEvent) -> dict[str, Any]:
    return {"id": event.part, "session": event.session, "message": event.message}


PROJECTORS: dict[type, Any] = {
    events.TextStarted: text_started,
    events.TextGrew: fragment_grew,
    events.TextEnded: text_ended,
    events.ReasoningStarted: reasoning_started,
    events.ReasoningGrew: fragment_grew,
    events.ReasoningEnded: reasoning_ended,
    events.ToolInputGrew: fragment_grew,
    events.SnapshotRecorded: snapshot_recorded,
    events.PatchRecorded: patch_recorded,
    events.RetryRecorded: retry_recorded,
    events.PartRemoved: part_removed,
}
