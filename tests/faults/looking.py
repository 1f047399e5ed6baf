"""Looks at everything in a store, and says what is missing, half there, or too much. Repairs nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, cast

import anyio
import attrs

from opencode_core.errors import OpencodeError
from opencode_core.model.codec import EVENTS as CODEC
from opencode_core.model.event.base import Recorded
from opencode_core.model.json import JSON
from opencode_core.model.projection import Memory, fold
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage
from opencode_core.storage.envelope import from_row, row_of
from opencode_core.storage.tables import EVENTS, HEADS, STORE
from tests.faults.ledger import Ledger, check_of
from tests.faults.stores import opened

Rows = dict[tuple[str, Key], JSON]


@attrs.frozen
class Found:
    """A whole store, as one view saw it.

    Attributes:
        rows: Every row.
        check: What the backend itself complains about.
    """

    rows: Rows
    check: tuple[str, ...] = ()

    def logs(self) -> dict[str, list[Recorded]]:
        """Returns every log, in its order."""
        logs: dict[str, list[Recorded]] = defaultdict(list)
        for (table, key), row in self.rows.items():
            if table == EVENTS:
                logs[str(key[0])].append(from_row(str(key[0]), int(key[1]), row, CODEC))
        return {log: sorted(events, key=lambda each: each.sequence) for log, events in logs.items()}


def look(url: str) -> Found:
    """Opens a store, and reads everything that is in it."""

    async def read() -> Found:
        async with opened(url) as sessions:
            return await look_into(sessions.log.storage)

    return anyio.run(read)


async def look_into(storage: Storage) -> Found:
    """Reads everything that is in an open store."""
    return Found(rows=await storage.view(every_row), check=tuple(await storage.check()))


def every_row(rows: ReadTransaction) -> Rows:
    """Returns all that is in a store."""
    return {(table, key): row for table in rows.tables() for key, row in rows.scan(table)}


def problems(found: Found, ledger: Ledger | None = None) -> list[str]:
    """Returns what is wrong with a store, one sentence each; the ledger says what must be in it."""
    logs = found.logs()
    return [
        *(f"The check says: {complaint}" for complaint in found.check),
        *_gaps(logs),
        *_halves(logs, ledger.gone | ledger.leaving if ledger else set()),
        *_differences(found.rows, logs),
        *(_missing(found.rows, logs, ledger) if ledger else ()),
    ]


def rows_of(logs: Mapping[str, list[Recorded]]) -> Rows:
    """Returns everything that follows from logs."""
    memory = Memory()
    for log, events in logs.items():
        memory.apply(fold(events))
        memory.rows[HEADS, (log,)] = {"sequence": events[-1].sequence}
        for event in events:
            memory.rows[EVENTS, (log, event.sequence)] = row_of(event, CODEC)
    return memory.rows


def _gaps(logs: Mapping[str, list[Recorded]]) -> Iterator[str]:
    for log, events in logs.items():
        if [each.sequence for each in events] != list(range(len(events))):
            yield f"The log '{log}' has the sequences {[each.sequence for each in events]}."


def _halves(logs: Mapping[str, list[Recorded]], gone: set[str]) -> Iterator[str]:
    """A transaction of many events says in each of them how many are in which log."""
    wanted: dict[str, dict[str, int]] = {}
    there: dict[str, Counter[str]] = defaultdict(Counter)
    for log, events in logs.items():
        for event in events:
            if event.event.metadata and "group" in event.event.metadata:
                group = str(event.event.metadata["group"])
                wanted[group] = cast("dict[str, int]", event.event.metadata["of"])
                there[group][log] += 1
    for group, sizes in wanted.items():
        left = {log: size for log, size in sizes.items() if log in logs or log not in gone}
        if there[group] != left:
            yield f"Of the transaction '{group}' there is {dict(there[group])}, not {left}."


def _differences(rows: Rows, logs: Mapping[str, list[Recorded]]) -> Iterator[str]:
    """Everything in a store follows from its logs."""
    try:
        expected = rows_of(logs)
    except OpencodeError as error:
        yield f"A log makes no sense: {error}"
        return
    for place in sorted(rows.keys() | expected.keys(), key=str):
        if place[0] == STORE:
            continue
        if place not in rows:
            yield f"The row {place} is missing."
        elif place not in expected:
            yield f"The row {place} follows from no log."
        elif rows[place] != expected[place]:
            yield f"The row {place} is other than the log says."


def _missing(rows: Rows, logs: Mapping[str, list[Recorded]], ledger: Ledger) -> Iterator[str]:
    for log in ledger.gone & logs.keys():
        yield f"The log '{log}' was removed and is there."
    for log, events in ledger.events.items():
        if log in ledger.gone or (log in ledger.leaving and log not in logs):
            continue
        for sequence, (id, check) in events.items():
            row = cast("dict[str, Any] | None", rows.get((EVENTS, (log, sequence))))
            if row is None:
                yield f"The event {sequence} of '{log}' was acknowledged and is missing."
            elif (row["id"], check_of(row)) != (id, check):
                yield f"The event {sequence} of '{log}' is another one than was acknowledged."
