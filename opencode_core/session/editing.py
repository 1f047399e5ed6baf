"""Works out which facts lead from one state of a session to another. Records nothing."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from opencode_core.errors import SessionError
from opencode_core.model.event.base import SessionEvent
from opencode_core.model.event.session import (
    RevertCleared,
    RevertStaged,
    SessionArchived,
    SessionPermitted,
    SessionShared,
    SessionTitled,
    SessionUnarchived,
    SessionUnshared,
)
from opencode_core.model.session import Session


def facts_between(before: Session, after: Session, *, at: int) -> Iterator[SessionEvent]:
    """Yields what happened, when a session was edited; nothing when it is the same.

    Raises:
        SessionError: Something changed that has an operation of its own.
    """
    _refuse_other_changes(before, after)
    session = before.id
    if after.title != before.title:
        yield SessionTitled(session=session, at=at, title=after.title)
    if after.share != before.share:
        url = None if after.share is None else after.share.url
        yield SessionUnshared(session=session, at=at) if url is None else SessionShared(session=session, at=at, url=url)
    if (after.permission or ()) != (before.permission or ()):
        yield SessionPermitted(session=session, at=at, rules=after.permission or ())
    if after.revert != before.revert:
        cleared = RevertCleared(session=session, at=at)
        yield cleared if after.revert is None else RevertStaged(session=session, at=at, revert=after.revert)
    if (after.time.archived is None) != (before.time.archived is None):
        put_away = after.time.archived is not None
        yield SessionArchived(session=session, at=at) if put_away else SessionUnarchived(session=session, at=at)


def _refuse_other_changes(before: Session, after: Session) -> None:
    editable = attrs.evolve(
        before,
        title=after.title,
        share=after.share,
        permission=after.permission,
        revert=after.revert,
        time=attrs.evolve(before.time, archived=after.time.archived, updated=after.time.updated),
    )
    if editable != after:
        names = [name for name in attrs.fields_dict(Session) if getattr(editable, name) != getattr(after, name)]
        raise SessionError(
            f"The field '{names[0]}' of the session '{before.id}' cannot be edited.",
            "Edit its title, share, permission, revert or archived time; everything else has its own operation.",
            session=before.id,
        )
