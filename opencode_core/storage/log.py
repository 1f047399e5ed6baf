"""The log: one ordered sequence of facts for each aggregate, durable with what follows from them. Opens no store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import attrs

from opencode_core.bus import Bus
from opencode_core.errors import LiveOnlyError, LogRemovedError
from opencode_core.ids import Ids
from opencode_core.model.codec import EVENTS as SESSION_CODEC
from opencode_core.model.codec import EventCodec
from opencode_core.model.event.base import DurableEvent, Event, EventLocation, Recorded
from opencode_core.model.projection import project
from opencode_core.model.rows import Draft
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from opencode_core.storage.announcing import Announcer
from opencode_core.storage.envelope import Serialized, deserialize, from_row
from opencode_core.storage.live import event_bus as event_bus
from opencode_core.storage.replaying import replay
from opencode_core.storage.tables import EVENTS, HEADS
from opencode_core.storage.writer import CommitHook, Projector, Writer

R = TypeVar("R")

PAGE = 256
"""How many events a tail reads at once."""


@attrs.frozen(kw_only=True)
class Page:
    """Some events of a log, in order.

    Attributes:
        events: The events; sequences that are missing between them belong to private events.
        has_more: Whether there were more when this was read.
    """

    events: tuple[Recorded, ...]
    has_more: bool


@attrs.define(eq=False, repr=False, kw_only=True)
class EventLog:
    """All logs of one store.

    Attributes:
        storage: Where they are kept.
        bus: Where it is told, after it is durable.
        ids: Makes the ids of events.
        codec: Knows every durable event.
        projectors: What follows from an event, in this order.
    """

    storage: Storage
    ids: Ids
    bus: Bus[Event] = attrs.field(factory=event_bus)
    codec: EventCodec = SESSION_CODEC
    projectors: Sequence[Projector] = (project,)
    _announcer: Announcer = attrs.field(
        init=False, default=attrs.Factory(lambda self: Announcer(self.bus), takes_self=True)
    )

    async def append(
        self, *events: DurableEvent, location: EventLocation | None = None, on_commit: CommitHook | None = None
    ) -> tuple[Recorded, ...]:
        """Records events, all or none, each at the end of its log.

        Args:
            events: What happened.
            location: Where it happened.
            on_commit: Runs for each event after the projectors, in the same transaction; it may run more than once.

        Raises:
            LiveOnlyError: One of them is not durable.
            UnknownEventError: The codec does not know the class of one of them.
            OpencodeError: A projector refuses one of them.
            StorageError: The store failed.
        """
        for event in events:
            if not isinstance(event, DurableEvent):
                raise _live_only(event)

        def work(writer: Writer) -> tuple[Recorded, ...]:
            return tuple(writer.append(event, location=location, on_commit=on_commit) for event in events)

        logs = {getattr(event, event.kind.aggregate) for event in events}
        return await self.commit(work, aggregate=logs.pop() if len(logs) == 1 else None)

    async def commit(self, work: Callable[[Writer], R], *, aggregate: str | None = None) -> R:
        """Runs work that reads rows and appends events, in one transaction, and then tells what it appended.

        Args:
            work: A plain function, which may run more than once.
            aggregate: The only log that it can append to; None when that is not known before.

        Raises:
            Exception: Whatever the work raised; nothing was written.
            StorageError: The store failed.
        """
        ticket = self._announcer.begin(aggregate)
        recorded: Sequence[Recorded] = ()
        rows: Draft | None = None

        def transaction(transaction: Transaction) -> tuple[R, list[Recorded], Draft]:
            writer = Writer(
                rows=Draft(transaction),
                transaction=transaction,
                codec=self.codec,
                ids=self.ids,
                projectors=self.projectors,
            )
            result = work(writer)
            writer.finish()
            return result, writer.recorded, writer.rows

        try:
            result, recorded, rows = await self.storage.transact(transaction)
        finally:
            self._announcer.end(ticket, recorded, rows)
        return result

    def tell(self, event: Event, *, on_commit: CommitHook | None = None) -> None:
        """Tells a live-only event to those who listen now.

        Raises:
            LiveOnlyError: It is durable, or something should be committed with it.
            Exception: Whatever the first failing listener raised.
        """
        if isinstance(event, (DurableEvent, Recorded)) or on_commit is not None:
            raise _live_only(event)
        self.bus.publish_or_raise(event)

    async def replay(
        self, *sent: Serialized, owner: str | None = None, strict: bool = False, publish: bool = False
    ) -> tuple[Recorded, ...]:
        """Adds events from elsewhere exactly where they stood, all or none; repeats are ignored.

        Args:
            sent: The events, each log in its order.
            owner: Who sends them; a log that nobody owns is theirs from then on.
            strict: Whether another owner is an error; else their events are skipped.
            publish: Whether those who listen now are told.

        Returns:
            What was added.

        Raises:
            UnknownEventError: Nobody knows the type or version of one of them.
            EventDecodeError: The data of one of them do not fit.
            ForeignAggregateError: One of them belongs to another log than it says.
            OwnerConflictError: A log belongs to somebody else, and ``strict``.
            SequenceGapError: Something is missing before one of them.
            DivergenceError: Something else stands where one of them stood.
            EventReusedError: The id of one of them stands elsewhere.
            StorageError: The store failed.
        """
        events = [deserialize(each, self.codec) for each in sent]

        def work(writer: Writer) -> tuple[Recorded, ...]:
            added = (replay(writer, event, self.codec, owner=owner, strict=strict) for event in events)
            kept = tuple(each for each in added if each is not None)
            if not publish:
                writer.recorded.clear()
            return kept

        return await self.commit(work)

    async def claim(self, aggregate: str, owner: str) -> None:
        """Makes somebody the owner of a log; the last to claim it stands.

        Raises:
            StorageError: The store failed.
        """
        await self.commit(lambda writer: writer.claim(aggregate, owner), aggregate=aggregate)

    async def remove(self, aggregate: str) -> None:
        """Takes a whole log away; what was projected from it stays.

        Raises:
            StorageError: The store failed.
        """
        await self.commit(lambda writer: writer.remove(aggregate), aggregate=aggregate)

    async def head(self, aggregate: str) -> int:
        """Returns the last sequence of a log; -1 when it is empty.

        Raises:
            StorageError: The store failed.
        """
        row = await self.storage.view(lambda rows: rows.get(HEADS, (aggregate,)))
        return int(str(row.get("sequence", -1))) if isinstance(row, dict) else -1

    async def history(self, aggregate: str, *, after: int = -1, limit: int = 50, private: bool = False) -> Page:
        """Returns the next events behind a sequence.

        Args:
            aggregate: Whose log.
            after: Starts behind this sequence.
            limit: At most so many.
            private: Whether private events are among them.

        Raises:
            ValueError: The limit is not positive.
            UnknownEventError: Nobody knows the type or version of one of them.
            EventDecodeError: One of them cannot be read.
            StorageError: The store failed.
        """
        if limit < 1:
            raise ValueError("The limit must be positive.")
        return await self.storage.view(
            lambda rows: read_page(rows, self.codec, aggregate, after=after, limit=limit, private=private)
        )

    def tail(
        self, aggregate: str, *, after: int = -1, private: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Recorded]]:
        """Follows a log from a sequence on, for ever: first what is there, then what comes, from any process.

        Nothing is missed and nothing comes twice.

        Raises:
            LogRemovedError: The log was removed; from the iterator.
            StorageClosedError: The store was closed; from the iterator.
            UnknownEventError: Nobody knows the type or version of an event; from the iterator.
            EventDecodeError: An event cannot be read; from the iterator.
            StorageError: The store failed; from the iterator.
        """
        return self._tail(aggregate, after, private)

    @asynccontextmanager
    async def _tail(self, aggregate: str, after: int, private: bool) -> AsyncIterator[AsyncIterator[Recorded]]:
        # Waiting begins before the first read, so what is committed in between wakes the next one.
        async with self.storage.changes(HEADS, (aggregate,)) as wakes:
            yield _Tail(self, wakes, aggregate, after, private)


@attrs.define(eq=False, repr=False)
class _Tail:
    """Reads on when it is asked and there may be more. Not a generator: a cancelled wait would end one for good."""

    _log: EventLog
    _wakes: AsyncIterator[None]
    _aggregate: str
    _after: int
    _private: bool
    _last: str | None = attrs.field(init=False, default=None)
    _unread: deque[Recorded] = attrs.field(init=False, factory=deque)
    _is_at_end: bool = attrs.field(init=False, default=False)

    def __aiter__(self) -> _Tail:
        return self

    async def __anext__(self) -> Recorded:
        while True:
            while self._unread:
                recorded = self._unread.popleft()
                if self._private or recorded.event.kind.public:
                    return recorded
            await self._read_on()

    async def _read_on(self) -> None:
        if self._is_at_end:
            await anext(self._wakes)
            self._is_at_end = False
        page, last = await self._log.storage.view(self._read)
        self._unread.extend(page.events)
        if page.events:
            self._after = page.events[-1].sequence
        self._last = last
        self._is_at_end = not page.has_more

    def _read(self, rows: ReadTransaction) -> tuple[Page, str | None]:
        """Returns what is new, and the id of the last event; one that was there and changed is in another log."""
        if self._last is not None and _id_at(rows, self._aggregate, self._after) != self._last:
            raise LogRemovedError(
                f"The log of '{self._aggregate}' was removed while it was followed.", "Follow it anew, if it is there."
            )
        page = read_page(rows, self._log.codec, self._aggregate, after=self._after, limit=PAGE, private=True)
        return page, page.events[-1].id if page.events else _id_at(rows, self._aggregate, self._after)


def read_page(
    rows: ReadTransaction, codec: EventCodec, aggregate: str, *, after: int, limit: int, private: bool
) -> Page:
    """Reads the next events of a log inside a view."""
    found: list[Recorded] = []
    while True:
        wanted = limit + 1 - len(found)
        scanned = list(rows.scan(EVENTS, (aggregate,), after=(aggregate, after), limit=wanted))
        for key, row in scanned:
            after = int(key[1])
            recorded = from_row(aggregate, after, row, codec)
            if private or recorded.event.kind.public:
                found.append(recorded)
        if len(scanned) < wanted or len(found) > limit:
            return Page(events=tuple(found[:limit]), has_more=len(found) > limit)


def _id_at(rows: ReadTransaction, aggregate: str, sequence: int) -> str | None:
    row = rows.get(EVENTS, (aggregate, sequence))
    return str(row.get("id")) if isinstance(row, Mapping) else None


def _live_only(event: Event) -> LiveOnlyError:
    return LiveOnlyError(
        f"The event '{type(event).__name__}' was used as if it were of the other kind.",
        "Append durable events, and tell live-only ones, with nothing committed beside them.",
    )
