"""A log is followed from any sequence and any process, without a gap and without a repeat."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_core.errors import EventDecodeError, StorageClosedError
from opencode_core.model.event.base import Recorded
from opencode_core.storage import log as log_module
from opencode_core.storage.tables import EVENTS
from plugin_sdk.storage import Storage
from tests.storage.making import (
    Noticed,
    PausedViews,
    collect,
    created,
    log_on,
    opened,
    sequences,
    take,
    titled,
    touched,
    weighed,
    whole,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.behaviour("EV-20")
async def test_a_tail_begins_behind_a_sequence_and_goes_on_with_what_comes(storage: Storage) -> None:
    log = log_on(storage)
    await log.append(weighed(0), weighed(1), weighed(2))
    async with log.tail("apple", after=0) as events:
        assert sequences(await take(events, 2)) == [1, 2]
        await log.append(weighed(3), weighed(9, thing="pear"))
        await log.append(weighed(4))
        assert [each.event for each in await take(events, 2)] == [weighed(3), weighed(4)]


@pytest.mark.behaviour("EV-21")
async def test_what_is_committed_between_the_last_read_and_the_waiting_comes_once(memory: Storage) -> None:
    paused = PausedViews(memory)
    log = log_on(paused)
    await log.append(weighed(0))
    got: list[Recorded] = []
    async with log.tail("apple") as events, anyio.create_task_group() as tasks:
        got.append(await anext(events))
        paused.pauses = True
        await log.append(weighed(1))
        tasks.start_soon(collect, events, 2, got)
        await paused.has_read.wait()
        await log.append(weighed(2))
        paused.go_on.set()
    assert sequences(got) == [0, 1, 2]


@pytest.mark.behaviour("EV-22")
async def test_what_is_committed_while_the_first_read_is_under_way_is_not_missed(memory: Storage) -> None:
    paused = PausedViews(memory)
    log = log_on(paused)
    await log.append(weighed(0))
    paused.pauses = True
    got: list[Recorded] = []
    async with log.tail("apple") as events, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, events, 2, got)
        await paused.has_read.wait()
        await log.append(weighed(1))
        paused.go_on.set()
    assert sequences(got) == [0, 1]


async def test_what_is_committed_before_the_first_read_of_an_entered_tail_comes_once(memory: Storage) -> None:
    log = log_on(memory)
    async with log.tail("apple") as events:
        await log.append(weighed(0), weighed(1))
        assert sequences(await take(events, 2)) == [0, 1]
        await log.append(weighed(2))
        assert sequences(await take(events, 1)) == [2]


@pytest.mark.behaviour("EV-23")
async def test_64_rapid_commits_arrive_once_and_in_order(storage: Storage) -> None:
    log = log_on(storage)
    got: list[Recorded] = []
    async with log.tail("apple") as events, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, events, 64, got)
        for grams in range(64):
            tasks.start_soon(log.append, weighed(grams))
    assert sequences(got) == list(range(64))
    assert sorted(each.event.grams for each in got) == list(range(64))  # type: ignore[attr-defined]


@pytest.mark.behaviour("EV-24")
async def test_live_only_events_are_never_in_a_tail(memory: Storage) -> None:
    log = log_on(memory)
    async with log.tail("apple") as events:
        log.tell(Noticed())
        await log.append(weighed(0))
        log.tell(Noticed())
        await log.append(weighed(1))
        assert [each.event for each in await take(events, 2)] == [weighed(0), weighed(1)]


async def test_private_events_are_in_a_tail_only_when_they_are_asked_for(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(created(), titled("a"), touched(), titled("b"))
    async with log.tail("ses_1") as public, log.tail("ses_1", private=True) as everything:
        assert sequences(await take(public, 2)) == [1, 3]
        assert sequences(await take(everything, 4)) == [0, 1, 2, 3]
        await log.append(touched(), titled("c"))
        assert sequences(await take(public, 1)) == [5]
        assert sequences(await take(everything, 2)) == [4, 5]


async def test_a_tail_reads_a_long_log_in_pages(memory: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "PAGE", 3)
    log = log_on(memory)
    await log.append(*(weighed(grams) for grams in range(10)))
    async with log.tail("apple") as events:
        assert sequences(await take(events, 10)) == list(range(10))
        await log.append(*(weighed(grams) for grams in range(7)))
        assert sequences(await take(events, 7)) == list(range(10, 17))


@pytest.mark.parametrize("storage_url", ["sqlite", "jsonfiles", "postgresql"], indirect=True)
async def test_what_another_store_object_commits_is_followed(storage_url: str) -> None:
    async with opened(storage_url) as here, opened(storage_url) as there:
        await log_on(there).append(weighed(0))
        async with log_on(here).tail("apple") as events:
            assert sequences(await take(events, 1)) == [0]
            await log_on(there).append(weighed(1))
            await log_on(there).append(weighed(2))
            assert [each.event for each in await take(events, 2)] == [weighed(1), weighed(2)]


@pytest.mark.parametrize("storage_url", ["sqlite"], indirect=True)
async def test_what_another_process_commits_is_followed(storage_url: str) -> None:
    async with opened(storage_url) as here:
        log = log_on(here)
        await log.append(weighed(0))
        async with log.tail("apple") as events:
            await take(events, 1)
            await anyio.run_process([sys.executable, "-c", ANOTHER_PROCESS, storage_url], cwd=ROOT)
            assert [each.event for each in await take(events, 2)] == [weighed(1), weighed(2)]


ANOTHER_PROCESS = """
import sys
import anyio
from tests.storage.making import log_on, opened, weighed

async def main():
    async with opened(sys.argv[1]) as storage:
        await log_on(storage).append(weighed(1))
        await log_on(storage).append(weighed(2))

anyio.run(main)
"""


async def test_closing_the_store_ends_a_tail_with_its_error(storage: Storage) -> None:
    log = log_on(storage)
    ends: list[str] = []

    async def follow(events: AsyncIterator[Recorded]) -> None:
        try:
            await anext(events)
        except StorageClosedError as error:
            ends.append(type(error).__name__)

    async with log.tail("apple") as events, anyio.create_task_group() as tasks:
        tasks.start_soon(follow, events)
        await anyio.wait_all_tasks_blocked()
        await storage.aclose()
    assert ends == ["StorageClosedError"]


async def test_a_tail_goes_on_after_a_wait_that_was_cancelled(storage: Storage) -> None:
    log = log_on(storage)
    await log.append(weighed(0))
    async with log.tail("apple") as events:
        await take(events, 1)
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect, events, 1, [])
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        await log.append(weighed(1))
        assert sequences(await take(events, 1)) == [1]


async def test_a_tail_goes_on_after_a_read_that_was_cancelled(memory: Storage) -> None:
    paused = PausedViews(memory)
    log = log_on(paused)
    await log.append(weighed(0))
    paused.pauses = True
    async with log.tail("apple") as events:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, events, 1, [])
            await paused.has_read.wait()
            tasks.cancel_scope.cancel()
        await log.append(weighed(1))
        assert sequences(await take(events, 2)) == [0, 1]


async def test_leaving_a_tail_leaves_nothing_behind(memory: Any) -> None:
    log = log_on(memory)
    async with log.tail("apple") as events:
        await log.append(weighed(0))
        await take(events, 1)
        assert memory._wakes.is_waited_for
    assert not memory._wakes.is_waited_for


async def test_an_event_that_cannot_be_read_comes_out_of_the_tail_as_its_error(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(0))
    await memory.transact(lambda rows: rows.put(EVENTS, ("apple", 0), {"id": "e", "type": "thing.weighed/1"}))
    async with log.tail("apple") as events:
        with pytest.raises(EventDecodeError, match="The event 0 of 'apple'"):
            await anext(events)


# Finite history


async def test_a_log_in_which_nothing_happened_is_empty(memory: Storage) -> None:
    page = await log_on(memory).history("ses_1")
    assert (page.events, page.has_more) == ((), False)


@pytest.mark.behaviour("HI-02", "HI-03")
async def test_pages_follow_each_other_although_private_events_leave_gaps(storage: Storage) -> None:
    log = log_on(storage)
    await log.append(created(), titled("a"), touched(), titled("b"), titled("c"))
    first = await log.history("ses_1", limit=2)
    second = await log.history("ses_1", after=first.events[-1].sequence, limit=2)
    assert (sequences(first.events), first.has_more) == ([1, 3], True)
    assert (sequences(second.events), second.has_more) == ([4], False)
    everything = await log.history("ses_1", after=0, private=True)
    assert sequences(everything.events) == [1, 2, 3, 4]


@pytest.mark.behaviour("HI-04")
async def test_what_is_committed_between_two_pages_is_on_the_next(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(0), weighed(1))
    first = await log.history("apple", limit=2)
    await log.append(weighed(2))
    assert not first.has_more
    assert sequences((await log.history("apple", after=1, limit=2)).events) == [2]


@pytest.mark.behaviour("HI-05")
@pytest.mark.parametrize(("limit", "has_more"), [(3, False), (2, True), (4, False), (1, True)])
async def test_a_page_knows_whether_there_are_more(memory: Storage, limit: int, has_more: bool) -> None:
    log = log_on(memory)
    await log.append(created(), titled("a"), titled("b"), touched(), titled("c"), touched(), touched())
    assert (await log.history("ses_1", limit=limit)).has_more is has_more


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_must_be_positive(memory: Storage, limit: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        await log_on(memory).history("apple", limit=limit)


async def test_another_log_whose_name_begins_the_same_is_not_in_the_way(memory: Storage) -> None:
    log = log_on(memory)
    await log.append(weighed(1, thing="a"), weighed(2, thing="ab"), weighed(3, thing=""), weighed(4, thing="a"))
    assert [each.event for each in await whole(log, "a")] == [weighed(1, thing="a"), weighed(4, thing="a")]
