"""What storing costs: durable appends, reading, listing, bytes and memory, beside plain sqlite3 in the same run.

The plain one opens SQLite with the same settings (write-ahead log, synchronous FULL) in one thread, and commits after
each event: once with one row for it, as a bare log would, and once with the same five rows that an append here leaves
(the event, the head of its log, the message, its place and its order). The goals are those of issue 3: at least half of
the plain speed for one session, ahead of it for ten and fifty, reading at 0.4 of it with decoding, lists that do not
grow with the number of sessions. An append here also crosses to the writing thread and back, which is measured too.
"""

import gc
import json
import sqlite3
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import perf_counter, time_ns

import anyio

from opencode_core.ids import Ids
from opencode_core.model.event.conversation import SyntheticAdded
from opencode_core.model.event.session import SessionCreated
from opencode_core.ports.storage import Storage
from opencode_core.session.store import SessionStore
from opencode_core.storage.log import EventLog
from opencode_core.storage.tables import EVENTS
from plugin_sdk.storage import EventLoop, Outcome
from plugins_builtin import storage_jsonfiles, storage_memory, storage_postgres, storage_sqlite
from tests.benchmarks._report import Row, timed, weighed
from tests.benchmarks._sampling import Case, Samples, Sizes, interleave
from tests.support.postgres_server import PostgresMissing, running_postgres

TEXT = "A message of two hundred characters or so, as a person would type it. " * 3
PLAIN = "plain sqlite3"
ONE, FIVE = f"{PLAIN}, 1 row", f"{PLAIN}, 5 rows"
BARE = "sqlite, 1 session, no projection"
APPENDING = "durable appends to SQLite, each"
OTHERS = "durable appends to other backends, each"
READING = "reading the events of a session"
LISTING = "listing sessions"
WEIGHING = "bytes and memory"
HOP = "to a thread and back, nothing else"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Measures one section after the other, in a folder that is gone afterwards."""
    for section in (appending, others, reading, listing, weighing):
        with tempfile.TemporaryDirectory(prefix="opencode-bench-") as folder:
            yield from anyio.run(section, sizes, Path(folder))


async def appending(sizes: Sizes, folder: Path) -> list[Row]:
    """Appends to one, ten and fifty sessions in SQLite. Nothing else writes: a disk syncs what others wrote, too."""
    async with _sqlite(folder / "ours.db") as store:
        with closing(_Plain(folder / "one.db", 1)) as one, closing(_Plain(folder / "five.db", 5)) as five:
            cases: dict[str, Case] = {
                ONE: _timed(lambda: one.append(sizes.appends)),
                FIVE: _timed(lambda: five.append(sizes.appends)),
                HOP: _awaited(lambda: _hops(sizes.appends)),
            }
            for number in (1, 10, 50):
                cases[_sessions(number)] = await _appender(store, number, sizes.appends)
            bare = EventLog(storage=store.log.storage, ids=store.ids, projectors=())
            cases[BARE] = await _appender(_store(store.log.storage, bare), 1, sizes.appends)
            took = await interleave(cases, sizes.batches)
    return list(_appending_rows(took, sizes.appends))


async def others(sizes: Sizes, folder: Path) -> list[Row]:
    """Appends to one and ten sessions in every other backend."""
    async with _others(folder) as stores:
        with closing(_Plain(folder / "five.db", 5)) as five:
            cases: dict[str, Case] = {FIVE: _timed(lambda: five.append(sizes.appends))}
            for name, store in stores.items():
                cases[f"{name}, 1 session"] = await _appender(store, 1, sizes.appends)
                cases[f"{name}, 10 sessions"] = await _appender(store, 10, sizes.appends)
            took = await interleave(cases, max(1, sizes.batches // 3))
    plain = (FIVE, took.pop(FIVE))
    rows = [timed(OTHERS, f"{FIVE}, one commit for each", "µs", plain[1], per=sizes.appends)]
    rows += [timed(OTHERS, name, "µs", samples, plain, per=sizes.appends) for name, samples in took.items()]
    return [*rows, *_without_postgres(took)]


def _appending_rows(took: dict[str, Samples], per: int) -> Iterator[Row]:
    goals = {_sessions(1): 2.0, _sessions(10): 1.0, _sessions(50): 1.0, BARE: 2.0}
    one = took[ONE]
    yield timed(APPENDING, f"{ONE}, one commit for each", "µs", one, per=per)
    yield timed(APPENDING, f"{FIVE}, one commit for each", "µs", took[FIVE], (ONE, one), per=per)
    yield timed(APPENDING, HOP, "µs", took[HOP], (ONE, one), per=per)
    for name, samples in took.items():
        if name not in (ONE, FIVE, HOP):
            reference = (ONE, one) if name == BARE else (FIVE, took[FIVE])
            yield timed(APPENDING, name, "µs", samples, reference, ratio_target=goals.get(name), per=per)
    for number in (1, 10, 50):
        yield timed(APPENDING, f"the same, {number} of them", "µs", took[_sessions(number)], (ONE, one), per=per)


def _without_postgres(took: dict[str, Samples]) -> Iterator[Row]:
    if not any(name.startswith("postgresql") for name in took):
        yield Row(section=OTHERS, name="postgresql", unit="µs", note="no PostgreSQL is installed")


async def reading(sizes: Sizes, folder: Path) -> list[Row]:
    """Reads a whole log, decoded to values, and the same rows without and with JSON only."""
    path = folder / "ours.db"
    async with _sqlite(path) as store:
        (session,) = await _fill(store, 1, sizes.events)
        connection = sqlite3.connect(path)

        def rows_only() -> list[tuple[str]]:
            found: list[tuple[str]] = connection.execute(
                "SELECT body FROM documents WHERE collection = ? ORDER BY key", (EVENTS,)
            ).fetchall()
            assert len(found) == sizes.events
            return found

        async def decoded() -> None:
            page = await store.log.history(session, limit=sizes.events, private=True)
            assert len(page.events) == sizes.events

        took = await interleave(
            {
                "rows": _timed(rows_only),
                PLAIN: _timed(lambda: [json.loads(body) for (body,) in rows_only()]),
                "ours": _awaited(decoded),
            },
            sizes.batches,
        )
        connection.close()
    plain, per = (f"{PLAIN} and json", took[PLAIN]), sizes.events
    return [
        timed(READING, f"{PLAIN}, rows as text", "µs", took["rows"], per=per),
        timed(READING, f"{PLAIN}, and json.loads", "µs", took[PLAIN], per=per),
        timed(READING, "history, decoded to values", "µs", took["ours"], plain, ratio_target=2.5, per=per),
        timed(READING, "the same, beside rows as text", "µs", took["ours"], (PLAIN, took["rows"]), per=per),
    ]


async def listing(sizes: Sizes, folder: Path) -> list[Row]:
    """Lists one page of few sessions and of many."""
    many = sizes.sessions
    async with (
        _sqlite(folder / "few.db") as few,
        _sqlite(folder / "some.db") as some,
        _sqlite(folder / "many.db") as all,
    ):
        for store, count in ((few, 10), (some, 50), (all, many)):
            await _create(store, count)
        cases = {
            "10 of 10": _awaited(lambda: few.list(limit=10)),
            f"10 of {many:,}": _awaited(lambda: all.list(limit=10)),
            "50 of 50": _awaited(lambda: some.list(limit=50)),
            f"50 of {many:,}": _awaited(lambda: all.list(limit=50)),
        }
        took = await interleave(cases, sizes.batches * 4)
    return [
        timed(LISTING, "a page of 10 out of 10", "µs", took["10 of 10"]),
        timed(
            LISTING,
            f"a page of 10 out of {many:,}",
            "µs",
            took[f"10 of {many:,}"],
            ("out of 10", took["10 of 10"]),
            ratio_target=1.2,
        ),
        timed(LISTING, "a page of 50 out of 50", "µs", took["50 of 50"]),
        timed(
            LISTING,
            f"a page of 50 out of {many:,}",
            "µs",
            took[f"50 of {many:,}"],
            ("out of 50", took["50 of 50"]),
            ratio_target=1.2,
        ),
    ]


async def weighing(sizes: Sizes, folder: Path) -> list[Row]:
    """Weighs what an event takes on disk, and what following a log takes in memory."""
    path = folder / "ours.db"
    async with _sqlite(path) as store:
        (session,) = await _fill(store, 1, sizes.events)
        text = await store.log.storage.view(
            lambda rows: sum(len(json.dumps(row)) for _, row in rows.scan(EVENTS, (session,)))
        )
        followed = await _weigh_following(store, session, sizes.events)
        await _append(store, session, 9 * sizes.events)
        followed_more = await _weigh_following(store, session, 10 * sizes.events)
    stored = _size(folder) / (10 * sizes.events)
    return [
        weighed(WEIGHING, "the JSON of one event", "B", text / sizes.events),
        weighed(
            WEIGHING,
            "one event and its message in SQLite, with all indices",
            "B",
            stored,
            ("its JSON", text / sizes.events),
        ),
        weighed(WEIGHING, f"the most held while following {sizes.events:,} events", "KiB", followed),
        weighed(
            WEIGHING,
            f"the most held while following {10 * sizes.events:,} events",
            "KiB",
            followed_more,
            (f"{sizes.events:,}", followed),
        ),
    ]


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


def _sessions(number: int) -> str:
    return f"sqlite, {number} session" + ("s" if number > 1 else "")


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncIterator[SessionStore]:
    storage = await storage_sqlite.open_store(f"sqlite:///{path}")
    yield _store(storage)
    await storage.aclose()


@asynccontextmanager
async def _others(folder: Path) -> AsyncIterator[dict[str, SessionStore]]:
    opened = {
        "memory": await storage_memory.open_store("memory:"),
        "jsonfiles": await storage_jsonfiles.open_store(f"jsonfiles:///{folder}/files"),
    }
    with ExitStack() as servers:
        with suppress(PostgresMissing):
            opened["postgresql"] = await storage_postgres.open_store(servers.enter_context(running_postgres()))
        yield {name: _store(storage) for name, storage in opened.items()}
        for storage in opened.values():
            await storage.aclose()


def _store(storage: Storage, log: EventLog | None = None) -> SessionStore:
    ids = Ids(milliseconds=lambda: time_ns() // 1_000_000)
    return SessionStore(log=log or EventLog(storage=storage, ids=ids), ids=ids, now=lambda: time_ns() // 1_000_000)


async def _appender(store: SessionStore, number: int, appends: int) -> Case:
    sessions = await _create(store, number)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(_append, store, session, appends // number)

    return _awaited(run)


async def _create(store: SessionStore, number: int) -> list[str]:
    ids = [store.ids.descending("session") for _ in range(number)]
    for start in range(0, number, 500):
        await store.log.append(
            *(SessionCreated(session=id, at=1, project="p", directory="/d") for id in ids[start : start + 500])
        )
    return ids


async def _append(store: SessionStore, session: str, count: int) -> None:
    for _ in range(count):
        message = store.ids.ascending("message")
        await store.log.append(SyntheticAdded(session=session, at=1, message=message, text=TEXT))


async def _fill(store: SessionStore, number: int, events: int) -> list[str]:
    sessions = await _create(store, number)
    for session in sessions:
        await _append(store, session, events - 1)
    return sessions


async def _weigh_following(store: SessionStore, session: str, events: int) -> float:
    gc.collect()
    tracemalloc.start()
    async with store.log.tail(session, private=True) as recorded:
        for _ in range(events):
            await anext(recorded)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def _timed(work: Callable[[], object]) -> Case:
    async def run() -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    return run


def _awaited(work: Callable[[], Awaitable[object]]) -> Case:
    async def run() -> float:
        start = perf_counter()
        await work()
        return perf_counter() - start

    return run


async def _hops(count: int) -> None:
    loop, jobs = EventLoop(), SimpleQueue[Outcome[None] | None]()

    def serve() -> None:
        while (job := jobs.get()) is not None:
            job.begin()
            job.succeed(None)
            loop.deliver((job,))

    thread = Thread(target=serve)
    thread.start()
    for _ in range(count):
        job: Outcome[None] = Outcome()
        jobs.put(job)
        await job.wait()
    jobs.put(None)
    thread.join()


class _Plain:
    """One commit for an event, in one thread: its row, and others that would follow from it."""

    def __init__(self, path: Path, rows: int) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE rows (kind TEXT, key TEXT, body TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )
        self._rows = rows
        self._next = 0

    def append(self, count: int) -> None:
        for _ in range(count):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("REPLACE INTO rows VALUES (?, ?, ?)", self._made()[: self._rows])
            self._connection.execute("COMMIT")
            self._next += 1

    def _made(self) -> list[tuple[str, str, str]]:
        message = f"msg_{self._next:026}"
        said = {"at": 1, "message": message, "text": TEXT}
        event = {"id": f"evt_{self._next:026}", "type": "synthetic.added/1", "data": said}
        row = {"role": "synthetic", "id": message, "sessionID": "ses_1", "time": {"created": 1}, "text": TEXT}
        rows: list[tuple[str, str, object]] = [
            ("event", f"ses_1/{self._next:09}", event),
            ("head", "ses_1", {"sequence": self._next}),
            ("message", f"ses_1/{message}", row),
            ("message_order", f"ses_1/{self._next:09}", {"id": message, "role": "synthetic"}),
            ("message_place", message, {"session": "ses_1", "sequence": self._next}),
        ]
        return [(kind, key, json.dumps(document)) for kind, key, document in rows]

    def close(self) -> None:
        self._connection.close()
