"""Logs, events and stores for the tests of the log."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, ClassVar

import anyio
import attrs

from opencode_core.ids import Ids
from opencode_core.model.codec import EventCodec
from opencode_core.model.event.base import DurableEvent, Event, EventKind, Recorded
from opencode_core.model.event.catalogue import SESSION_EVENTS
from opencode_core.model.event.session import SessionCreated, SessionTitled, SessionTouched
from opencode_core.storage.envelope import Serialized, serialize
from opencode_core.storage.log import EventLog
from plugin_sdk.storage import JSON, Key, ReadTransaction, Storage, Transaction
from plugins_builtin import storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite
from tests.storage_contract.wrapped import WrappedStorage

BACKENDS = ["memory", "sqlite", "jsonfiles", "postgresql"]
_FACTORIES: dict[str, Any] = {
    "memory": storage_memory.open_store,
    "sqlite": storage_sqlite.open_store,
    "jsonfiles": storage_jsonfiles.open_store,
    "postgresql": storage_postgres.open_store,
}


@attrs.frozen(kw_only=True)
class Weighed(DurableEvent):
    """A fact of something that is no session."""

    kind: ClassVar = EventKind("thing.weighed", aggregate="thing")

    thing: str
    grams: int = 0


@attrs.frozen(kw_only=True)
class Noticed(Event):
    """A live-only event."""

    what: str = ""


CODEC = EventCodec([*SESSION_EVENTS, Weighed])


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Storage]:
    """Opens a store, and closes it."""
    store: Storage = await _FACTORIES[url.partition(":")[0]](url)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()


def log_on(storage: Any, **options: Any) -> EventLog:
    """Makes a log that also knows events of things."""
    milliseconds = count(1_700_000_000_000)
    return EventLog(storage=storage, ids=Ids(milliseconds=lambda: next(milliseconds)), **{"codec": CODEC, **options})


def created(session: str = "ses_1", **fields: Any) -> SessionCreated:
    """A session was created."""
    return SessionCreated(**{"session": session, "at": 1, "project": "prj", "directory": "/w", **fields})


def titled(title: str, session: str = "ses_1") -> SessionTitled:
    """It got a title: a public event."""
    return SessionTitled(session=session, at=2, title=title)


def touched(session: str = "ses_1") -> SessionTouched:
    """Somebody was active: a private event."""
    return SessionTouched(session=session, at=3)


def weighed(grams: int, thing: str = "apple") -> Weighed:
    """Something was weighed."""
    return Weighed(thing=thing, at=1, grams=grams)


def sent(recorded: Iterable[Recorded]) -> list[Serialized]:
    """Returns events as another store would get them: through text."""
    serialized = [serialize(each, CODEC) for each in recorded]
    return [Serialized(**json.loads(json.dumps(attrs.asdict(each, recurse=False)))) for each in serialized]


async def whole(log: EventLog, aggregate: str = "ses_1") -> list[Recorded]:
    """Returns all events of a log."""
    page = await log.history(aggregate, limit=10_000, private=True)
    assert not page.has_more
    return list(page.events)


async def all_rows(storage: Storage) -> dict[tuple[str, Key], JSON]:
    """Returns everything that is in a store."""

    def read(rows: ReadTransaction) -> dict[tuple[str, Key], JSON]:
        return {(table, key): document for table in rows.tables() for key, document in rows.scan(table)}

    return await storage.view(read)


async def take(events: AsyncIterator[Any], number: int) -> list[Any]:
    """Returns so many events of an endless iterator."""
    taken: list[Any] = []
    await collect(events, number, taken)
    return taken


async def collect(events: AsyncIterator[Any], number: int, into: list[Any]) -> None:
    """Adds so many events to a list, one by one."""
    for _ in range(number):
        # What never comes should fail one test, and not hold up all others.
        with anyio.fail_after(30):
            into.append(await anext(events))


def sequences(events: Iterable[Recorded]) -> list[int]:
    """Returns where events stand."""
    return [each.sequence for each in events]


class PausedViews(WrappedStorage):
    """A store in which a view, once it has read, can be held up before it returns."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.pauses = False
        self.has_read = anyio.Event()
        self.go_on = anyio.Event()

    async def view(self, work: Callable[[ReadTransaction], Any]) -> Any:
        result = await super().view(work)
        if self.pauses:
            self.pauses = False
            self.has_read.set()
            await self.go_on.wait()
        return result


class HeldAcknowledgements(WrappedStorage):
    """A store in which a commit is done, but its acknowledgement waits until the test lets it go."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.committed: list[anyio.Event] = []
        self.arrived = anyio.Event()

    async def transact(self, work: Callable[[Transaction], Any]) -> Any:
        result = await super().transact(work)
        gate = anyio.Event()
        self.committed.append(gate)
        self.arrived.set()
        await gate.wait()
        return result

    async def wait_for(self, number: int) -> None:
        """Waits until so many commits are done."""
        while len(self.committed) < number:
            with anyio.fail_after(30):
                await self.arrived.wait()
            self.arrived = anyio.Event()
