"""What is in a store is counted, and what belongs to nobody any more is found."""

from pathlib import Path

import pytest

from opencode_core.errors import StorageForeignError
from opencode_core.storage.statistics import LARGEST, measure
from opencode_core.storage.tables import EVENTS
from tests.storage.filling import SECRET, Watched, a_store, everything, fill, first_generation, put


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonfiles"])
async def test_everything_is_counted_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    async with a_store(kind, tmp_path) as storage:
        await fill(storage)
        watched = Watched(storage)
        found = await measure(watched)
        assert watched.transactions == 0
        documents = await everything(storage)
    assert (found.facts.kind, found.version, found.sessions, found.events) == (kind, 1, 2, 22)
    assert found.facts.bytes
    assert {size.name: size.documents for size in found.tables} == {
        table: sum(each == table for each, *_ in documents) for table, *_ in documents
    }
    assert sum(size.bytes for size in found.tables) > 0
    assert found.bytes_per_event == pytest.approx(
        next(size.bytes for size in found.tables if size.name == EVENTS) / 22, abs=0.1
    )
    assert (found.orphans.documents, found.orphans.bytes) == (0, 0)
    assert SECRET not in repr(found)


async def test_an_empty_store_has_nothing_in_it() -> None:
    async with a_store() as storage:
        found = await measure(storage)
    assert (found.version, found.tables, found.sessions, found.events, found.bytes_per_event) == (None, (), 0, 0, 0.0)
    assert found.largest == ()


async def test_the_largest_sessions_come_first_with_everything_that_is_theirs() -> None:
    async with a_store() as storage:
        await fill(storage, *(f"ses_{number}" for number in range(LARGEST + 2)))
        await put(storage, {("part", ("msg_ses_3_b", "prt_x")): {"sessionID": "ses_3", "text": "x" * 5_000}})
        found = await measure(storage)
    assert len(found.largest) == LARGEST
    assert found.largest[0].name == "ses_3"
    assert found.largest[0].bytes - found.largest[1].bytes > 5_000
    total = sum(size.bytes for size in found.tables if size.name not in ("store", "event_id"))
    assert sum(size.bytes for size in found.largest) == pytest.approx(total * 5 / 7, rel=0.5)
    assert [size.bytes for size in found.largest] == sorted((size.bytes for size in found.largest), reverse=True)


async def test_what_belongs_to_sessions_that_are_gone_is_left_over() -> None:
    async with a_store() as storage:
        await fill(storage)
        kept = await measure(storage)
        await storage.transact(lambda rows: rows.delete("session", ("abc", "ses_1")))
        found = await measure(storage)
    gone = next(size for size in kept.largest if size.name == "ses_1")
    assert found.sessions == 1
    assert found.orphans.documents == gone.documents - 1
    assert 0 < found.orphans.bytes < gone.bytes


async def test_a_log_that_was_never_a_sessions_is_not_left_over() -> None:
    async with a_store() as storage:
        await fill(storage)
        await put(storage, {("event", ("acme", 0)): {}, ("head", ("acme",)): {"sequence": 0}})
        assert (await measure(storage)).orphans.documents == 0


async def test_sessions_of_the_first_generation_are_measured_too() -> None:
    async with a_store() as storage:
        await put(storage, first_generation(3))
        found = await measure(storage)
    assert (found.version, found.sessions, found.events) == (0, 3, 0)
    assert [size.documents for size in found.largest] == [3, 3, 3]


async def test_somebody_elses_store_is_not_measured() -> None:
    async with a_store() as storage:
        await put(storage, {("invoice", ("1",)): 1})
        with pytest.raises(StorageForeignError):
            await measure(storage)
