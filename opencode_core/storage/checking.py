"""Looks at everything in a store, and says what is wrong. Repairs nothing, and repeats nothing of what is stored.

Each log is looked at in one view, so a store can be checked while others write to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import attrs

from opencode_core.errors import InvalidKeyError, LogError, SessionError, StorageDamagedError
from opencode_core.ids import is_placed
from opencode_core.model.codec import EVENTS as SESSION_CODEC
from opencode_core.model.codec import EventCodec
from opencode_core.model.event.base import Recorded
from opencode_core.model.event.session import SessionCreated, SessionImported
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage
from opencode_core.storage.belonging import find_orphans
from opencode_core.storage.comparing import differences
from opencode_core.storage.envelope import from_row
from opencode_core.storage.finding import Finding
from opencode_core.storage.folding import Folded
from opencode_core.storage.tables import EVENT_IDS, EVENTS, HEADS

PAGE = 500


@attrs.define
class Checked:
    """What was looked at, and what is wrong with it."""

    logs: int = 0
    events: int = 0
    findings: list[Finding] = attrs.field(factory=list)


async def check(storage: Storage, *, codec: EventCodec = SESSION_CODEC) -> Checked:
    """Checks the backend, every log, the rows that follow from each, and that nothing belongs to nothing.

    Raises:
        StorageError: The store failed, other than by being wrong.
    """
    checked = Checked()
    checked.findings += [Finding(area="backend", problem=problem) for problem in await storage.check()]
    try:
        await _check_logs(storage, codec, checked)
        checked.findings += await storage.view(_check_ids)
        checked.findings += await find_orphans(storage)
    except StorageDamagedError as error:  # the rest cannot be read
        checked.findings.append(Finding(area="backend", problem=error.problem))
    return checked


async def _check_logs(storage: Storage, codec: EventCodec, checked: Checked) -> None:
    aggregate = await storage.view(_next_log(None))
    while aggregate is not None:
        count, found = await storage.view(_log_checker(aggregate, codec))
        checked.logs += 1
        checked.events += count
        checked.findings += found
        aggregate = await storage.view(_next_log(aggregate))


def _next_log(after: str | None) -> Callable[[ReadTransaction], str | None]:
    """Finds the next log, whether it has a head, events, or both."""

    def find(rows: ReadTransaction) -> str | None:
        heads = rows.scan(HEADS, after=None if after is None else (after,), limit=1)
        # Text sorts behind every number, so this is behind all events of the log.
        events = rows.scan(EVENTS, after=None if after is None else (after, "\U0010ffff"), limit=1)
        names = [str(key[0]) for found in (heads, events) for key, _ in found]
        return min(names, default=None)

    return find


def _log_checker(aggregate: str, codec: EventCodec) -> Callable[[ReadTransaction], tuple[int, list[Finding]]]:
    return lambda rows: _Log(rows, aggregate, codec).check()


@attrs.define(eq=False, repr=False)
class _Log:
    rows: ReadTransaction
    aggregate: str
    codec: EventCodec
    found: list[Finding] = attrs.field(init=False, factory=list)
    folded: Folded | None = attrs.field(init=False, factory=Folded)

    def check(self) -> tuple[int, list[Finding]]:
        count, expected = 0, 0
        for sequence, row in self._events():
            if sequence != expected:
                self._say(f"The log has a gap before {sequence}.")
            recorded = self._decoded(sequence, row)
            if recorded is not None:
                self._check_id(recorded)
                self._fold(recorded)
            count, expected = count + 1, sequence + 1
        self._check_head(expected - 1)
        if self.folded is not None and not self.found:
            self.found += differences(self.rows, self.aggregate, self.folded)
        return count, self.found

    def _events(self) -> Iterator[tuple[int, JSON]]:
        after = None
        while True:
            page = list(self.rows.scan(EVENTS, (self.aggregate,), after=after, limit=PAGE))
            for key, row in page:
                if len(key) == 2 and isinstance(key[1], int):
                    yield key[1], row
                else:
                    self._say(f"The event under {key!r} has no sequence.")
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def _decoded(self, sequence: int, row: JSON) -> Recorded | None:
        try:
            return from_row(self.aggregate, sequence, row, self.codec)
        except LogError as error:
            self._say(f"The event {sequence} cannot be read. {error.problem}")
        except Exception as error:  # what the converter raises for a location that does not fit
            self._say(f"The event {sequence} cannot be read ({type(error).__name__}).")
        self.folded = None
        return None

    def _check_id(self, recorded: Recorded) -> None:
        proven = is_placed(recorded.id, self.aggregate, recorded.sequence)
        if proven is None:
            proven = self.rows.get(EVENT_IDS, (recorded.id,)) == [self.aggregate, recorded.sequence]
        if not proven:
            self._say(f"The id of the event {recorded.sequence} is not known, or known for another one.")

    def _fold(self, recorded: Recorded) -> None:
        if recorded.sequence == 0 and not isinstance(recorded.event, (SessionCreated, SessionImported)):
            self.folded = None  # a session that is older than its log, or no session: nothing can be replayed
        if self.folded is None:
            return
        try:
            self.folded.add(recorded)
        except SessionError as error:
            self.folded = None
            self._say(f"The event {recorded.sequence} does not follow on those before it ({type(error).__name__}).")

    def _check_head(self, last: int) -> None:
        head = self.rows.get(HEADS, (self.aggregate,))
        said = head.get("sequence", -1) if isinstance(head, Mapping) else None
        if said != last:
            self._say(f"The log ends with {last}, and its head says {said}.")

    def _say(self, problem: str) -> None:
        self.found.append(Finding(area="log", session=self.aggregate, problem=problem))


def _check_ids(rows: ReadTransaction) -> list[Finding]:
    """Looks whether every id that is known for itself stands for an event; that each event's is known was checked."""
    return [
        Finding(area="log", problem=f"The event id {key[0]!r} is known, and no event has it.")
        for key, place in _known_ids(rows)
        if not _has_id(rows, place, key[0])
    ]


def _known_ids(rows: ReadTransaction) -> Iterator[tuple[Key, JSON]]:
    after = None
    while page := list(rows.scan(EVENT_IDS, after=after, limit=PAGE)):
        yield from page
        after = page[-1][0]


def _has_id(rows: ReadTransaction, place: JSON, id: str | int) -> bool:
    try:
        aggregate, sequence = cast("tuple[str, int]", place)
        event = rows.get(EVENTS, (aggregate, sequence))
    except (TypeError, ValueError, InvalidKeyError):
        return False
    return isinstance(event, Mapping) and event.get("id") == id
