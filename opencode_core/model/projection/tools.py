"""What happens to the state of a tool call, and which ways it may go."""

from __future__ import annotations

from typing import Any

import attrs

from opencode_core.errors import IllegalTransitionError
from opencode_core.model.event import conversation as events
from opencode_core.model.part import (
    CompletedTime,
    CompletedTool,
    FailedTool,
    PendingTool,
    RunningTool,
    Span,
    ToolPart,
    ToolState,
)
from opencode_core.model.projection.context import visit
from opencode_core.model.projection.parts import add_new, existing
from opencode_core.model.projection.stored import drop_fragments, read_part, write_part
from opencode_core.model.rows import Draft

_NAMES: dict[type, str] = {
    PendingTool: "pending",
    RunningTool: "running",
    CompletedTool: "completed",
    FailedTool: "error",
}


def input_started(draft: Draft, event: events.ToolInputStarted, sequence: int) -> None:
    """The call is pending."""
    part = ToolPart(
        id=event.part,
        session=event.session,
        message=event.message,
        call=event.call,
        tool=event.tool,
        state=PendingTool(),
    )
    add_new(draft, event, sequence, part)


def input_ended(draft: Draft, event: events.ToolInputEnded, _sequence: int) -> None:
    """The call is pending, with all of its raw input."""
    part = _in_state(draft, event, PendingTool)
    _become(draft, part, PendingTool(raw=event.raw))


def called(draft: Draft, event: events.ToolCalled, sequence: int) -> None:
    """The call is running, with its parsed input."""
    state = RunningTool(input=event.input, time=Span(start=event.at))
    if read_part(draft, event.session, event.message, event.part) is None:
        part = ToolPart(
            id=event.part,
            session=event.session,
            message=event.message,
            call=event.call,
            tool=event.tool,
            state=state,
            metadata=event.provider_metadata,
            executed=event.executed,
        )
        add_new(draft, event, sequence, part)
        return
    part = _in_state(draft, event, PendingTool)
    _become(draft, part, state, metadata=event.provider_metadata, executed=part.executed or event.executed)


def progressed(draft: Draft, event: events.ToolProgressed, _sequence: int) -> None:
    """The running call shows how far it is."""
    part = _in_state(draft, event, RunningTool)
    assert isinstance(part.state, RunningTool)
    title = part.state.title if event.title is None else event.title
    shown = part.state.metadata if event.shown is None else event.shown
    _become(draft, part, attrs.evolve(part.state, title=title, metadata=shown))


def succeeded(draft: Draft, event: events.ToolSucceeded, _sequence: int) -> None:
    """The call is completed; what the provider sent with the result stands beside what it sent with the call."""
    part = _in_state(draft, event, RunningTool)
    assert isinstance(part.state, RunningTool)
    state = CompletedTool(
        input=part.state.input,
        output=event.output,
        title=event.title,
        metadata=event.shown,
        structured=event.structured,
        time=CompletedTime(start=part.state.time.start, end=event.at),
        attachments=event.attachments,
    )
    _become(draft, part, state, result_metadata=event.provider_metadata, executed=part.executed or event.executed)
    for folder in event.visited:
        visit(draft, event.session, folder)


def failed(draft: Draft, event: events.ToolFailed, _sequence: int) -> None:
    """The call is in error, with the last progress it made; raw input that was never parsed becomes none."""
    part = _in_state(draft, event, PendingTool, RunningTool)
    running = part.state if isinstance(part.state, RunningTool) else None
    state = FailedTool(
        input={} if running is None else running.input,
        error=event.error,
        interrupted=event.interrupted,
        output=event.output,
        metadata=None if running is None else running.metadata,
        time=Span(start=event.at if running is None else running.time.start, end=event.at),
    )
    _become(draft, part, state, result_metadata=event.provider_metadata, executed=part.executed or event.executed)


def output_cleared(draft: Draft, event: events.ToolOutputCleared, _sequence: int) -> None:
    """The completed call says when its output was cleared; the output stays."""
    part = _in_state(draft, event, CompletedTool)
    assert isinstance(part.state, CompletedTool)
    time = attrs.evolve(part.state.time, compacted=event.at)
    _become(draft, part, attrs.evolve(part.state, time=time))


def _in_state(draft: Draft, event: events.PartEvent, *allowed: type) -> ToolPart:
    part = existing(draft, event)
    if not isinstance(part, ToolPart) or not isinstance(part.state, allowed):
        is_now = f"is {_NAMES[type(part.state)]}" if isinstance(part, ToolPart) else "is not a tool call"
        fitting = " or ".join(_NAMES[each] for each in allowed)
        raise IllegalTransitionError(
            f"The event '{event.kind.type}' does not fit the part '{event.part}': it {is_now}.",
            f"It must be {fitting}.",
            session=event.session,
        )
    return part


def _become(draft: Draft, part: ToolPart, state: ToolState, **changes: Any) -> None:
    if isinstance(part.state, PendingTool):
        drop_fragments(draft, part.message, part.id)
    kept = {name: value for name, value in changes.items() if value is not None}
    write_part(draft, attrs.evolve(part, state=state, **kept))


PROJECTORS: dict[type, Any] = {
    events.ToolInputStarted: input_started,
    events.ToolInputEnded: input_ended,
    events.ToolCalled: called,
    events.ToolProgressed: progressed,
    events.ToolSucceeded: succeeded,
    events.ToolFailed: failed,
    events.ToolOutputCleared: output_cleared,
}
