"""What facts of a session as a whole do to its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from opencode_core.errors import LifecycleConflictError, MessageDecodeError
from opencode_core.model.codec import decode_session, encode
from opencode_core.model.event import session as events
from opencode_core.model.message import AgentSwitchMessage, ModelSwitchMessage
from opencode_core.model.part import Moment
from opencode_core.model.projection.context import end_epoch, forget_visits
from opencode_core.model.projection.stored import add_message, carried, read_session, write_session
from opencode_core.model.rows import DIFFS, SESSION_LISTS, SESSION_PLACES, SESSIONS, Draft, list_keys
from opencode_core.model.session import Session, SessionSummary, SessionTime, Share


def created(draft: Draft, event: events.SessionCreated, _sequence: int) -> None:
    """The session is there, and in its lists."""
    _refuse_second(draft, event.session)
    session = Session(
        id=event.session,
        slug=event.slug,
        version=event.version,
        project=event.project,
        directory=event.directory,
        parent=event.parent,
        title=event.title,
        agent=event.agent,
        model=event.model,
        workspace=event.workspace,
        permission=event.permission,
        time=SessionTime(created=event.at, updated=event.at),
    )
    draft.put(SESSIONS, (session.project, session.id), encode(session))
    _place(draft, session)


def imported(draft: Draft, event: events.SessionImported, _sequence: int) -> None:
    """The session is there as its document says."""
    _refuse_second(draft, event.session)
    session = decode_session(event.document, session=event.session)
    if session.id != event.session:
        raise MessageDecodeError(
            f"The document of the session '{event.session}' names another session.",
            "Give it the id of the session that it is to be.",
            session=event.session,
        )
    draft.put(SESSIONS, (session.project, session.id), event.document)
    _place(draft, session)


def titled(draft: Draft, event: events.SessionTitled, _sequence: int) -> None:
    """It has another title."""
    change(draft, event, title=event.title)


def touched(draft: Draft, event: events.SessionTouched, _sequence: int) -> None:
    """Only its time changes."""
    change(draft, event)


def archived(draft: Draft, event: events.SessionArchived, _sequence: int) -> None:
    """It says when it was put away."""
    session = read_session(draft, event.session)
    write_session(draft, attrs.evolve(session, time=attrs.evolve(session.time, archived=event.at)))


def unarchived(draft: Draft, event: events.SessionUnarchived, _sequence: int) -> None:
    """It no longer does."""
    session = read_session(draft, event.session)
    time = attrs.evolve(session.time, archived=None, updated=event.at)
    write_session(draft, attrs.evolve(session, time=time))


def shared(draft: Draft, event: events.SessionShared, _sequence: int) -> None:
    """It says where it is public."""
    change(draft, event, share=Share(url=event.url))


def unshared(draft: Draft, event: events.SessionUnshared, _sequence: int) -> None:
    """It no longer does."""
    change(draft, event, share=None)


def diffed(draft: Draft, event: events.SessionDiffed, _sequence: int) -> None:
    """The diffs stand beside it, and it has their totals."""
    draft.put(DIFFS, (event.session,), encode(event.diffs))
    summary = SessionSummary(
        additions=sum(diff.additions for diff in event.diffs),
        deletions=sum(diff.deletions for diff in event.diffs),
        files=len(event.diffs),
    )
    change(draft, event, summary=summary)


def permitted(draft: Draft, event: events.SessionPermitted, _sequence: int) -> None:
    """It has other rules."""
    change(draft, event, permission=event.rules or None)


def moved(draft: Draft, event: events.SessionMoved, _sequence: int) -> None:
    """It is somewhere else, in other lists, and its epoch is over."""
    session = read_session(draft, event.session)
    document = draft.get(SESSIONS, (session.project, session.id))
    draft.delete(SESSIONS, (session.project, session.id))
    for key in _lists(session):
        draft.delete(SESSION_LISTS, key)
    session = attrs.evolve(
        session,
        directory=event.directory,
        project=event.project,
        workspace=event.workspace,
        time=attrs.evolve(session.time, updated=event.at),
    )
    draft.put(SESSIONS, (session.project, session.id), carried(document, session))
    _place(draft, session)
    end_epoch(draft, event.session)
    forget_visits(draft, event.session)


def agent_switched(draft: Draft, event: events.AgentSwitched, sequence: int) -> None:
    """It has another agent, and the conversation says so."""
    message = AgentSwitchMessage(
        id=event.message,
        session=event.session,
        time=Moment(created=event.at),
        agent=event.agent,
        metadata=event.metadata,
    )
    add_message(draft, sequence, message)
    change(draft, event, agent=event.agent)


def model_switched(draft: Draft, event: events.ModelSwitched, sequence: int) -> None:
    """It has another model, and the conversation says so."""
    message = ModelSwitchMessage(
        id=event.message,
        session=event.session,
        time=Moment(created=event.at),
        model=event.model,
        metadata=event.metadata,
    )
    add_message(draft, sequence, message)
    change(draft, event, model=event.model)


def change(draft: Draft, event: Any, **changes: Any) -> None:
    """Changes fields of the event's session, and says when."""
    session = read_session(draft, event.session)
    time = attrs.evolve(session.time, updated=event.at)
    write_session(draft, attrs.evolve(session, time=time, **changes))


def _refuse_second(draft: Draft, session: str) -> None:
    if draft.get(SESSION_PLACES, (session,)) is not None:
        raise LifecycleConflictError(
            f"The session '{session}' exists already.", "Create it once, under one id.", session=session
        )


def _place(draft: Draft, session: Session) -> None:
    place: Mapping[str, Any] = {"project": session.project, "created": session.time.created}
    draft.put(SESSION_PLACES, (session.id,), place)
    for key in _lists(session):
        draft.put(SESSION_LISTS, key, True)


def _lists(session: Session) -> list[Any]:
    return list_keys(session.id, session.project, session.directory, session.parent, session.time.created)


PROJECTORS: dict[type, Any] = {
    events.SessionCreated: created,
    events.SessionImported: imported,
    events.SessionTitled: titled,
    events.SessionTouched: touched,
    events.SessionArchived: archived,
    events.SessionUnarchived: unarchived,
    events.SessionShared: shared,
    events.SessionUnshared: unshared,
    events.SessionDiffed: diffed,
    events.SessionPermitted: permitted,
    events.SessionMoved: moved,
    events.AgentSwitched: agent_switched,
    events.ModelSwitched: model_switched,
}
