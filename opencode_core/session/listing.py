"""Reads pages of sessions and of messages, in both directions. Writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import attrs

from opencode_core.errors import MessageDecodeError
from opencode_core.model.message import Entry
from opencode_core.model.rows import SESSION_LISTS, SESSION_PLACES, Rows, digest
from opencode_core.model.session import Session
from opencode_core.model.storage import Key
from opencode_core.session.cursor import Cursor, read_cursor
from opencode_core.session.reading import find_session, get_session, message_keys, read_entries

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Listing(Generic[T]):
    """One page of a list.

    Attributes:
        items: What is on it, in the order of the list.
        next: The cursor of the page behind it; None when there was nothing more.
        previous: The cursor of the page before it; None when this is the first.
    """

    items: tuple[T, ...]
    next: str | None = None
    previous: str | None = None


@attrs.frozen(kw_only=True)
class SessionFilter:
    """Which sessions; at most one of the three."""

    project: str | None = None
    directory: str | None = None
    parent: str | None = None

    @property
    def prefix(self) -> Key:
        """The list that has them."""
        if self.parent is not None:
            return "parent", self.parent
        if self.directory is not None:
            return "directory", digest(self.directory)
        return ("project", self.project) if self.project is not None else ("all", "")


def list_sessions(
    rows: Rows, which: SessionFilter, *, limit: int, cursor: str | None, reverse: bool, archived: bool
) -> Listing[Session]:
    """Returns a page of sessions, by when they were created and then by id; an unknown cursor gives an empty page."""
    at = Cursor(anchor="", reverse=reverse) if cursor is None else read_cursor(cursor)
    if at is None:
        return Listing(items=())
    after: Key | None = None
    if at.anchor:
        place = cast("Mapping[str, Any] | None", rows.get(SESSION_PLACES, (at.anchor,)))
        if place is None:
            return Listing(items=())
        after = (*which.prefix, -place["created"], at.anchor)
    found = _sessions(rows, which, after, limit + 1, at.reverse != (at.direction == "next"), archived)
    return _listing(found, [session.id for session in found], limit, at)


def list_messages(rows: Rows, session: str, *, limit: int, cursor: str | None, reverse: bool) -> Listing[Entry]:
    """Returns a page of messages, by their sequence; an unknown cursor gives an empty page.

    Raises:
        SessionNotFoundError: There is no such session.
        MessageDecodeError: A row does not fit.
    """
    get_session(rows, session)
    at = Cursor(anchor="", reverse=reverse) if cursor is None else read_cursor(cursor)
    if at is None:
        return Listing(items=())
    backwards = at.reverse == (at.direction == "next")
    keys = message_keys(rows, session, after=at.anchor or None, limit=limit + 1, reverse=backwards)
    page = _listing(keys, [id for _, id in keys], limit, at)
    entries = read_entries(rows, session, page.items)
    return Listing(items=tuple(entries), next=page.next, previous=page.previous)


def _sessions(
    rows: Rows, which: SessionFilter, after: Key | None, wanted: int, backwards: bool, archived: bool
) -> list[Session]:
    found: list[Session] = []
    while len(found) < wanted:
        chunk = list(rows.scan(SESSION_LISTS, which.prefix, after=after, limit=wanted, reverse=backwards))
        for key, _ in chunk:
            session = _listed(rows, str(key[3]))
            if session is not None and (archived or session.time.archived is None):
                found.append(session)
        if len(chunk) < wanted:
            break
        after = chunk[-1][0]
    return found[:wanted]


def _listed(rows: Rows, id: str) -> Session | None:
    """One session that cannot be read must not hide all others; asked for itself, it says what is wrong."""
    try:
        return find_session(rows, id)
    except MessageDecodeError as error:
        logging.getLogger("opencode.session").warning("%s It is left out of the list.", error.problem)
        return None


def _listing(found: Sequence[T], ids: Sequence[str], limit: int, at: Cursor) -> Listing[T]:
    """Cuts the one item too many that tells whether there is more, and says where the neighbours are."""
    more = len(found) > limit
    items, anchors = list(found[:limit]), list(ids[:limit])
    if at.direction == "previous":
        items.reverse()
        anchors.reverse()
    if not items:
        return Listing(items=())
    has_next = more if at.direction == "next" else True
    has_previous = bool(at.anchor) if at.direction == "next" else more
    return Listing(
        items=tuple(items),
        next=str(Cursor(anchor=anchors[-1], direction="next", reverse=at.reverse)) if has_next else None,
        previous=str(Cursor(anchor=anchors[0], direction="previous", reverse=at.reverse)) if has_previous else None,
    )
