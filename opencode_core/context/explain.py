"""Explains what the model of a session was told and why, from the log alone. Observes nothing, and writes nothing.

The log is folded event by event: what is kept grows with what was told, not with what was said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import attrs

from opencode_core.context.compare import parts_of, told_by_baseline, told_by_update
from opencode_core.context.told import (
    Cut,
    CutKind,
    EndTold,
    EpochTold,
    Explanation,
    MessageTold,
    Origin,
    Told,
    TurnTold,
)
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.base import DurableEvent, Recorded
from opencode_core.model.event.conversation import (
    MessageImported,
    MessageRemoved,
    PartRemoved,
    ShellStarted,
    StepStarted,
    SyntheticAdded,
    ToolOutputCleared,
    TurnPrepared,
    TurnSettled,
)
from opencode_core.model.event.session import (
    AgentSwitched,
    CompactionEnded,
    ContextAdmitted,
    EpochStarted,
    ModelSwitched,
    PromptPromoted,
    RevertCommitted,
    SessionCreated,
    SessionImported,
    SessionMoved,
)

if TYPE_CHECKING:
    from opencode_core.storage.log import EventLog

PAGE = 256
"""How many events are read at once."""

_CUTS: dict[type[DurableEvent], CutKind] = {
    CompactionEnded: "compaction",
    RevertCommitted: "revert",
    MessageRemoved: "message removed",
    PartRemoved: "part removed",
    ToolOutputCleared: "output cleared",
}
_NEW_MESSAGE = (
    PromptPromoted,
    StepStarted,
    ContextAdmitted,
    AgentSwitched,
    ModelSwitched,
    SyntheticAdded,
    ShellStarted,
    CompactionEnded,
    MessageImported,
)


async def explain(log: EventLog, session: str) -> Explanation:
    """Reads the log of a session, a page at a time, and explains it; without a log there is nothing to explain.

    Raises:
        UnknownEventError: Nobody knows the type or version of an event.
        EventDecodeError: An event cannot be read.
        StorageError: The store failed.
    """
    explaining = Explaining()
    while True:
        page = await log.history(session, after=explaining.head, limit=PAGE, private=True)
        for recorded in page.events:
            explaining.hear(recorded)
        if not page.has_more:
            return explaining.finish()


@attrs.define(eq=False)
class Explaining:
    """Reads one log, event by event, in order.

    Attributes:
        head: The last sequence that was read; -1 before the first.
    """

    head: int = attrs.field(init=False, default=-1)
    _origin: Origin = attrs.field(init=False, default="")
    _epochs: list[EpochTold] = attrs.field(init=False, factory=list)
    _stands: bool = attrs.field(init=False, default=False)  # the last of them, whose messages and turns follow here
    _told: list[Told] = attrs.field(init=False, factory=list)
    _outside: list[Told] = attrs.field(init=False, factory=list)
    _last: dict[str, SnapshotEntry] = attrs.field(init=False, factory=dict)
    _places: dict[str, int] = attrs.field(init=False, factory=dict)
    _system: set[str] = attrs.field(init=False, factory=set)
    _turns: dict[str, int] = attrs.field(init=False, factory=dict)
    _before: TurnTold | None = attrs.field(init=False, default=None)
    _cuts: list[Cut] = attrs.field(init=False, factory=list)
    # What is only known later of something that was told, by the sequence of that.
    _unsent: list[int] = attrs.field(init=False, factory=list)
    _sent: dict[int, int] = attrs.field(init=False, factory=dict)
    _retracted: dict[int, int] = attrs.field(init=False, factory=dict)
    _requests: dict[str, int] = attrs.field(init=False, factory=dict)
    _outcomes: dict[int, str] = attrs.field(init=False, factory=dict)

    def hear(self, recorded: Recorded) -> None:
        """Takes the next event."""
        event, self.head = recorded.event, recorded.sequence
        if isinstance(event, _NEW_MESSAGE):
            self._place(event.message, event)
        match event:
            case SessionCreated():
                self._origin = "created"
            case SessionImported():
                self._origin = "imported"
            case EpochStarted():
                self._begin(event)
            case ContextAdmitted():
                self._admit(event)
            case TurnPrepared():
                self._prepare(event)
            case TurnSettled() if event.turn in self._requests:
                self._outcomes[self._requests[event.turn]] = event.outcome
            case SessionMoved():
                self._end(EndTold(kind="moved", sequence=self.head, at=event.at, directory=event.directory))
            case MessageRemoved():
                self._take_back([event.message], event)
            case RevertCommitted() if event.message in self._places:
                boundary = self._places[event.message]
                self._take_back([id for id, place in self._places.items() if place > boundary], event)
        if type(event) in _CUTS:
            self._cuts.append(Cut(kind=_CUTS[type(event)], sequence=self.head))

    def finish(self) -> Explanation:
        """Returns what was read so far."""
        epochs = list(self._epochs)
        if self._stands:
            epochs[-1] = attrs.evolve(epochs[-1], told=tuple(self._told))
        return Explanation(
            head=self.head,
            origin=self._origin,
            epochs=tuple(attrs.evolve(each, told=self._completed(each.told)) for each in epochs),
            outside=self._completed(self._outside),
            snapshot=dict(self._last) if self._stands else {},
            last=dict(self._last),
        )

    def _place(self, message: str, event: DurableEvent) -> None:
        self._places[message] = self.head
        is_system = isinstance(event, MessageImported) and event.document.get("role") == "system"
        if is_system or isinstance(event, ContextAdmitted):
            self._system.add(message)

    def _begin(self, event: EpochStarted) -> None:
        self._end(EndTold(kind="replaced", sequence=self.head, at=event.at, reason=event.reason))
        parts = parts_of(event.baseline, event.sections)
        self._epochs.append(
            EpochTold(
                number=len(self._epochs) + 1,
                sequence=self.head,
                at=event.at,
                reason=event.reason,
                since=event.since,
                baseline=event.baseline,
                sources=told_by_baseline(parts, event.snapshot, self._last),
            )
        )
        self._stands, self._last = True, dict(event.snapshot)
        self._cuts.clear()

    def _admit(self, event: ContextAdmitted) -> None:
        parts = parts_of(event.text, event.sections)
        self._tell(
            MessageTold(
                id=event.message,
                sequence=self.head,
                at=event.at,
                text=event.text,
                sources=told_by_update(parts, event.changed, event.removed, self._last),
                after=len(self._turns),
            )
        )
        self._unsent.append(self.head)
        kept = {key: entry for key, entry in self._last.items() if key not in event.removed}
        self._last = {**kept, **event.changed}

    def _prepare(self, event: TurnPrepared) -> None:
        before, number = self._before, self._turns.setdefault(event.turn, len(self._turns) + 1)
        turn = TurnTold(
            number=number,
            id=event.turn,
            attempt=event.attempt,
            sequence=self.head,
            at=event.at,
            agent=event.agent,
            model=event.model,
            messages=event.messages,
            digest=event.digest,
            prefix=event.prefix,
            expected="" if before is None else before.digest,
            stable=_is_stable(event, before),
            cuts=tuple(self._cuts),
        )
        self._tell(turn)
        self._requests[event.turn] = self.head
        self._sent.update(dict.fromkeys(self._unsent, number))
        self._unsent.clear()
        self._cuts.clear()
        self._before = turn if self._stands else None

    def _tell(self, told: Told) -> None:
        (self._told if self._stands else self._outside).append(told)

    def _take_back(self, gone: Collection[str], event: DurableEvent) -> None:
        """Messages are gone; an epoch ends with a system message that its baseline does not have."""
        taken = {id: self._places[id] for id in gone if id in self._system and id in self._places}
        for id in gone:
            self._places.pop(id, None)
        self._retracted.update(dict.fromkeys(taken.values(), self.head))
        if self._stands:
            newer = tuple(id for id, place in taken.items() if place > self._epochs[-1].since)
            if newer:
                how = _CUTS[type(event)]
                self._end(EndTold(kind="retracted", sequence=self.head, at=event.at, reason=how, messages=newer))

    def _end(self, end: EndTold) -> None:
        if self._stands:
            self._epochs[-1] = attrs.evolve(self._epochs[-1], told=tuple(self._told), end=end)
        self._stands, self._told, self._before = False, [], None
        self._unsent.clear()  # nobody will be sent it: the next baseline tells it

    def _completed(self, told: Iterable[Told]) -> tuple[Told, ...]:
        return tuple(self._with_sequel(each) for each in told)

    def _with_sequel(self, told: Told) -> Told:
        if isinstance(told, TurnTold):
            return attrs.evolve(told, outcome=self._outcomes.get(told.sequence, ""))
        sent, retracted = self._sent.get(told.sequence), self._retracted.get(told.sequence)
        return attrs.evolve(told, sent=sent, retracted=retracted)


def _is_stable(event: TurnPrepared, before: TurnTold | None) -> bool | None:
    if before is None or not before.digest or not event.digest:
        return None
    if not event.prefix and event.messages >= before.messages:
        return None  # it was prepared without knowing the one before it
    return event.prefix == before.digest
