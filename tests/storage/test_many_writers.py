"""Many writers of one log leave no gap and lose nothing."""

import anyio
import pytest

from opencode_core.ids import is_placed
from plugin_sdk.storage import Storage
from tests.storage.making import log_on, opened, sequences, weighed, whole


@pytest.mark.parametrize("storage_url", ["memory", "sqlite"], indirect=True)
async def test_8_tasks_append_50_events_each_without_a_gap(storage: Storage) -> None:
    log = log_on(storage)

    async def write(writer: int) -> None:
        for number in range(50):
            await log.append(weighed(writer * 50 + number))

    async with anyio.create_task_group() as tasks:
        for writer in range(8):
            tasks.start_soon(write, writer)
    events = await whole(log, "apple")
    assert sequences(events) == list(range(400))
    assert sorted(each.event.grams for each in events) == list(range(400))  # type: ignore[attr-defined]
    assert all(is_placed(each.id, "apple", each.sequence) for each in events)
    assert len({each.id for each in events}) == 400


@pytest.mark.parametrize("storage_url", ["sqlite", "postgresql"], indirect=True)
async def test_two_store_objects_append_to_one_log_without_a_gap(storage_url: str) -> None:
    async with opened(storage_url) as one, opened(storage_url) as other:
        logs = [log_on(one), log_on(other)]

        async def write(writer: int) -> None:
            for number in range(10):
                await logs[writer % 2].append(weighed(writer * 10 + number))

        async with anyio.create_task_group() as tasks:
            for writer in range(4):
                tasks.start_soon(write, writer)
        events = await whole(logs[0], "apple")
    assert sequences(events) == list(range(40))
    assert sorted(each.event.grams for each in events) == list(range(40))  # type: ignore[attr-defined]
