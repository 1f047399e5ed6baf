"""A log that is replayed into an empty store gives the same rows, on every backend."""

import json
import random
from typing import Any

from opencode_core.model.event.conversation import StepStarted, TextGrew, TextStarted
from opencode_core.model.rows import FRAGMENTS
from opencode_core.model.session import ModelChoice
from opencode_core.storage.tables import EVENT_IDS, EVENTS, HEADS
from plugin_sdk.storage import JSON, Key, Storage
from tests.model.projection.stories import story
from tests.storage.making import all_rows, created, log_on, opened, sent, whole
from tests.storage_contract.wrapped import WrappedStorage, WrappedTransaction


async def test_a_replayed_log_gives_the_same_rows_on_every_backend(storage: Storage) -> None:
    told = story(random.Random(1).choice, length=150)
    async with opened("memory:") as one_by_one:
        source = log_on(one_by_one)
        for event in told.events:
            await source.append(event.event)
        log = await whole(source)
        expected = await all_rows(one_by_one)
    events = sent(log)
    target = log_on(storage)
    for start in range(0, len(events), 40):
        await target.replay(*events[start : start + 40])
    rows = await all_rows(storage)
    assert rows == expected
    assert await whole(target) == log
    assert [each.event for each in log] == [each.event for each in told.events]
    projected = {place: row for place, row in rows.items() if place[0] not in (EVENTS, EVENT_IDS, HEADS)}
    assert projected == told.rows.rows


async def test_replaying_everything_twice_changes_nothing(memory: Storage) -> None:
    told = story(random.Random(3).choice, length=150)
    log = log_on(memory)
    await log.append(*(each.event for each in told.events))
    before = await all_rows(memory)
    assert await log.replay(*sent(await whole(log))) == ()
    assert await all_rows(memory) == before


async def test_a_streamed_text_writes_to_the_store_what_arrived(memory: Storage) -> None:
    counting = Counting(memory)
    log = log_on(counting)
    who: dict[str, Any] = {"session": "ses_1", "at": 1, "message": "msg_1"}
    model = ModelChoice(provider="p", model="m")
    await log.append(created(), StepStarted(**who, part="prt_0", model=model), TextStarted(**who, part="prt_1"))
    written = {}
    offset = 0
    for pieces in (100, 200):
        counting.transaction.written.clear()
        for _ in range(pieces):
            await log.append(TextGrew(**who, part="prt_1", offset=offset, text="x" * 50))
            offset += 50
        puts = counting.transaction.written
        assert {table for table, _ in puts} == {EVENTS, HEADS, FRAGMENTS}
        written[pieces] = sum(size for _, size in puts)
    assert written[200] < 2.1 * written[100]


class _Counted(WrappedTransaction):
    written: list[tuple[str, int]] = []  # noqa: RUF012 - shared by the transactions of one test, which clears it

    def put(self, table: str, key: Key, document: JSON) -> None:
        self.written.append((table, len(json.dumps(document))))
        super().put(table, key, document)


class Counting(WrappedStorage):
    """A store that notes how much is written, and where."""

    transaction = _Counted
