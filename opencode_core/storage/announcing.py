"""Tells the live bus what was committed, each log in the order of its sequence. Stores nothing.

Two commits may be acknowledged in the other order than they were made. So what would leave a gap waits for those that
were under way at the same time; a gap that remains then was filled by another process.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from opencode_core.bus import Bus
from opencode_core.model.event.base import Event, Recorded
from opencode_core.model.event.live import (
    MessageDeleted,
    MessageUpdated,
    PartDeleted,
    PartUpdated,
    SessionAppeared,
    SessionDiffUpdated,
    SessionUpdated,
)
from opencode_core.model.event.session import SessionCreated, SessionImported
from opencode_core.model.rows import DIFFS, MESSAGES, PARTS, SESSIONS, Change


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
    _under_way: dict[int, str | None] = attrs.field(init=False, factory=dict)
    _told: dict[str, int] = attrs.field(init=False, factory=dict)
    _held: dict[str, list[_Held]] = attrs.field(init=False, factory=dict)

    def begin(self, aggregate: str | None = None) -> int:
        """Notes that a commit is under way, and returns its ticket.

        Args:
            aggregate: The only log that it can append to; None when that is not known.
        """
        ticket = next(self._tickets)
        self._under_way[ticket] = aggregate
        return ticket

    def end(self, ticket: int, recorded: Sequence[Recorded] = (), changes: Sequence[Change] = ()) -> None:
        """Notes that it is over, and tells what can be told now."""
        del self._under_way[ticket]
        heard = self._bus.is_heard
        by_log = itertools.groupby(sorted(recorded, key=_log_of), key=_log_of)
        for aggregate, group in by_log:
            told = list(group)
            events: list[Event] = [*told, *_row_events(told, changes)] if heard else []
            held = _Held(told[0].sequence, told[-1].sequence, next(self._tickets), events)
            self._held.setdefault(aggregate, []).append(held)
        for aggregate in list(self._held):
            self._tell(aggregate)
        self._told = {log: last for log, last in self._told.items() if self._is_under_way(log)}

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

    def _is_under_way(self, aggregate: str, before: float = math.inf) -> bool:
        return any(ticket < before and log in (None, aggregate) for ticket, log in self._under_way.items())


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
