"""What turns and steps do to assistant messages."""

from __future__ import annotations

from typing import Any, cast

import attrs

from opencode_core.errors import IllegalTransitionError
from opencode_core.model.event import conversation as events
from opencode_core.model.message import AssistantMessage, MessageTime, WorkingPath
from opencode_core.model.part import StepFinishPart, StepStartPart
from opencode_core.model.projection.parts import add_new
from opencode_core.model.projection.stored import (
    add_message,
    add_part,
    move_cursor,
    read_cursor,
    read_message,
    session_key,
    write_message,
)
from opencode_core.model.rows import Draft


def turn_prepared(draft: Draft, event: events.TurnPrepared, _sequence: int) -> None:
    """The last turn is this one."""
    session_key(draft, event.session)
    move_cursor(draft, event.session, turn={"id": event.turn, "state": "prepared", "attempt": event.attempt})


def turn_dispatched(draft: Draft, event: events.TurnDispatched, _sequence: int) -> None:
    """The last turn may have reached the provider."""
    _turn(draft, event.session, event.turn, "dispatched")


def turn_settled(draft: Draft, event: events.TurnSettled, _sequence: int) -> None:
    """The last turn is over."""
    _turn(draft, event.session, event.turn, event.outcome)


def step_started(draft: Draft, event: events.StepStarted, sequence: int) -> None:
    """There is an assistant message that is open, and no other one is."""
    _complete_open(draft, event.session, event.at)
    message = AssistantMessage(
        id=event.message,
        session=event.session,
        time=MessageTime(created=event.at),
        parent=event.parent,
        model=event.model.model,
        provider=event.model.provider,
        variant=event.model.variant,
        agent=event.agent,
        path=WorkingPath(cwd=event.cwd, root=event.root),
        summary=event.summary,
    )
    add_message(draft, sequence, message)
    part = StepStartPart(id=event.part, session=event.session, message=event.message, snapshot=event.snapshot)
    add_part(draft, sequence, part)
    move_cursor(draft, event.session, assistant=event.message)


def step_ended(draft: Draft, event: events.StepEnded, sequence: int) -> None:
    """The message is complete, with what it cost."""
    message = _unfinished(draft, event)
    part = StepFinishPart(
        id=event.part,
        session=event.session,
        message=event.message,
        reason=event.finish,
        snapshot=event.snapshot,
        cost=event.cost,
        tokens=event.tokens,
    )
    add_new(draft, event, sequence, part)
    structured = message.structured if event.structured is None else event.structured
    write_message(
        draft,
        attrs.evolve(
            message,
            time=attrs.evolve(message.time, completed=event.at),
            finish=event.finish,
            cost=message.cost + event.cost,
            tokens=event.tokens,
            structured=structured,
        ),
    )
    _close(draft, event.session, event.message)


def step_failed(draft: Draft, event: events.StepFailed, _sequence: int) -> None:
    """The message is complete, with why it broke off."""
    message = _unfinished(draft, event)
    write_message(
        draft,
        attrs.evolve(
            message,
            time=attrs.evolve(message.time, completed=event.at),
            finish=event.finish,
            error=event.error,
            cost=message.cost + event.cost,
            tokens=event.tokens,
        ),
    )
    _close(draft, event.session, event.message)


def _unfinished(draft: Draft, event: events.StepEnded | events.StepFailed) -> AssistantMessage:
    message = read_message(draft, event.session, event.message, AssistantMessage)
    if message.finish is not None:
        raise IllegalTransitionError(
            f"The step of the message '{event.message}' is over already.", "End each step once.", session=event.session
        )
    return message


def _turn(draft: Draft, session: str, turn: str, state: str) -> None:
    session_key(draft, session)
    known = read_cursor(draft, session).get("turn")
    before = known if isinstance(known, dict) and known.get("id") == turn else {"id": turn}
    move_cursor(draft, session, turn={**before, "state": state})


def _complete_open(draft: Draft, session: str, at: int) -> None:
    open_one = read_cursor(draft, session).get("assistant")
    if open_one is None:
        return
    message = read_message(draft, session, cast("str", open_one), AssistantMessage)
    write_message(draft, attrs.evolve(message, time=attrs.evolve(message.time, completed=at)))


def _close(draft: Draft, session: str, message: str) -> None:
    if read_cursor(draft, session).get("assistant") == message:
        move_cursor(draft, session, assistant=None)


PROJECTORS: dict[type, Any] = {
    events.TurnPrepared: turn_prepared,
    events.TurnDispatched: turn_dispatched,
    events.TurnSettled: turn_settled,
    events.StepStarted: step_started,
    events.StepEnded: step_ended,
    events.StepFailed: step_failed,
}
