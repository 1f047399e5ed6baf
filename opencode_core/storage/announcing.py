"""Tells the live bus what was committed, each log in the order of its sequence. Stores nothing.

Two commits may be acknowledged in the other order than they were made. So what would leave a gap waits for those that
were under way at the same time; a gap that remains then was filled by another process.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import attrs

from opencode_core.bus import Bus
from opencode_core.model.event.base import Event, Recorded
from opencode_core.model.event.live import (
    LiveEvent,
    MessageDeleted,
    MessageUpdated,
    PartDeleted,
    PartUpdated,
    SessionAppeared,
    SessionDiffUpdated,
    SessionUpdated,
)
from opencode_core.model.event.session import SessionCreated, SessionImported
from opencode_core.model.rows import DIFFS, MESSAGES, PARTS, SESSIONS, Change, Draft

Ticket: TypeAlias = tuple[int, str | None]
"""A commit that is under way: its number, and its log if that is known."""


@attrs.frozen
class _Held:
    first: int
    last: int
    until: int
    events: Sequence[Event]


@attrs.define(eq=False, repr=False)
class Announcer:
    """Holds back what came too early."""

    _bus: Bus[Event]
    _tickets: itertools.count[int] = attrs.field(init=False, factory=itertools.count)
    # By log, and under None those of which the log is not known; the first ticket of each is its oldest.
    _under_way: dict[str | None, dict[int, None]] = attrs.field(init=False, factory=dict)
    _told: dict[str, int] = attrs.field(init=False, factory=dict)
    _held: dict[str, list[_Held]] = attrs.field(init=False, factory=dict)

    def begin(self, aggregate: str | None = None) -> Ticket:
        """Notes that a commit is under way, and returns its ticket.

        Args:
            aggregate: The only log that it can append to; None when that is not known.
        """
        number = next(self._tickets)
        self._under_way.setdefault(aggregate, {})[number] = None
        return number, aggregate

    def end(self, ticket: Ticket, recorded: Sequence[Recorded] = (), rows: Draft | None = None) -> None:
        """Notes that it is over, and tells what can be told now."""
        self._strike_out(ticket)
        if not self._under_way and not self._held:  # alone, as nearly always: nothing can come too early
            self._told.clear()
            self._publish_all(recorded, rows)
            return
        for told in _by_log(recorded):
            held = _Held(told[0].sequence, told[-1].sequence, next(self._tickets), self._events(told, rows))
            self._held.setdefault(told[0].aggregate, []).append(held)
        for aggregate in list(self._held):
            self._tell(aggregate)
        self._forget([ticket[1]] if ticket[1] is not None else list(self._told))

    def _publish_all(self, recorded: Sequence[Recorded], rows: Draft | None) -> None:
        for told in _by_log(recorded):
            for event in self._events(told, rows):
                self._bus.publish(event)

    def _strike_out(self, ticket: Ticket) -> None:
        number, aggregate = ticket
        of_log = self._under_way[aggregate]
        del of_log[number]
        if not of_log:
            del self._under_way[aggregate]

    def _events(self, recorded: Sequence[Recorded], rows: Draft | None) -> Sequence[Event]:
        if not self._bus.is_heard:
            return ()
        if rows is None or not self._bus.hears(LiveEvent):
            return recorded
        return [*recorded, *_row_events(recorded, rows.changes())]

    def _tell(self, aggregate: str) -> None:
        waiting = sorted(self._held.pop(aggregate), key=lambda held: held.first)
        while waiting and self._may_tell(aggregate, waiting[0]):
            held = waiting.pop(0)
            self._told[aggregate] = held.last
            for event in held.events:
                self._bus.publish(event)
        if waiting:
            self._held[aggregate] = waiting

    def _may_tell(self, aggregate: str, held: _Held) -> bool:
        return self._told.get(aggregate, -1) == held.first - 1 or not self._is_under_way(aggregate, before=held.until)

    def _forget(self, logs: Iterable[str]) -> None:
        for log in logs:
            if not self._is_under_way(log):
                self._told.pop(log, None)

    def _is_under_way(self, aggregate: str, before: float = math.inf) -> bool:
        for log in (aggregate, None):
            tickets = self._under_way.get(log)
            if tickets and next(iter(tickets)) < before:
                return True
        return False


def _by_log(recorded: Sequence[Recorded]) -> Iterable[Sequence[Recorded]]:
    if len(recorded) < 2:
        return (recorded,) if recorded else ()
    return [list(group) for _, group in itertools.groupby(sorted(recorded, key=_log_of), key=_log_of)]


def _log_of(recorded: Recorded) -> str:
    return recorded.aggregate


def _row_events(recorded: Sequence[Recorded], changes: Iterable[Change]) -> Iterator[Event]:
    session = recorded[0].aggregate
    is_new = any(isinstance(each.event, (SessionCreated, SessionImported)) for each in recorded)
    for change in changes:
        row = change.document if change.document is not None else change.was
        if change.table == SESSIONS and change.key[1] == session and change.document is not None:
            made = SessionAppeared if is_new else SessionUpdated
            yield made(session=session, document=change.document)
        elif change.table == DIFFS and change.key[0] == session and change.document is not None:
            yield SessionDiffUpdated(session=session, document=change.document)
        elif change.table == MESSAGES and change.key[0] == session:
            yield _message_event(session, change)
        elif change.table == PARTS and (row is None or cast("Mapping[str, Any]", row).get("sessionID") == session):
            yield _part_event(session, change)


def _message_event(session: str, change: Change) -> Event:
    message = str(change.key[1])
    if change.document is None:
        return MessageDeleted(session=session, message=message)
    return MessageUpdated(session=session, message=message, document=change.document)


def _part_event(session: str, change: Change) -> Event:
    message, part = str(change.key[0]), str(change.key[1])
    if change.document is None:
        return PartDeleted(session=session, message=message, part=part)
    return PartUpdated(session=session, message=message, part=part, document=change.document)
