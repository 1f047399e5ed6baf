"""What is queued together is committed together, and each job still stands or falls alone."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from plugin_sdk.storage import Storage, Transaction
from plugins_builtin.storage_sqlite import groups as groups_module
from plugins_builtin.storage_sqlite import writer
from tests.storage_sqlite.conftest import Open

Groups = list[int]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    """How many jobs were in each transaction."""
    sizes: Groups = []
    real = groups_module.carry_out

    def counted(*arguments: Any) -> Any:
        settled = real(*arguments)
        sizes.append(len(settled))
        return settled

    monkeypatch.setattr(writer, "carry_out", counted)
    return sizes


class Gate:
    """Holds the writer in a job until it is opened, so that others queue behind it."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.reached.set()
        assert self._open.wait(30)

    def open(self) -> None:
        self._open.set()

    async def is_reached(self) -> None:
        assert await anyio.to_thread.run_sync(self.reached.wait, 30)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open at the end, whatever happened."""
    gate = Gate()
    yield gate
    gate.open()


async def queued_behind(gate: Gate, storage: Storage, *works: Any) -> list[Any]:
    """Runs works that are all queued before the first of them begins, and returns their results or errors."""
    results: list[Any] = [None] * len(works)

    async def run(number: int) -> None:
        try:
            results[number] = await storage.transact(works[number])
        except Exception as error:
            results[number] = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.transact, gate)
        await gate.is_reached()
        for number in range(len(works)):
            tasks.start_soon(run, number)
            await anyio.wait_all_tasks_blocked()  # so that they queue in this order
        gate.open()
    return results


def putting(number: int) -> Any:
    def work(tx: Transaction) -> int:
        tx.put("t", (number,), number)
        return number

    return work


async def test_jobs_that_are_queued_together_share_one_commit(opened: Open, groups: Groups, gate: Gate) -> None:
    storage = await opened()
    results = await queued_behind(gate, storage, *[putting(number) for number in range(40)])
    assert results == list(range(40))
    assert sum(groups) == 41
    assert len(groups) <= 2
    assert await storage.view(lambda tx: len(list(tx.scan("t")))) == 40


async def test_a_flood_of_jobs_does_not_become_one_endless_transaction(
    opened: Open, groups: Groups, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_JOBS", 8)
    storage = await opened()
    await queued_behind(gate, storage, *[putting(number) for number in range(40)])
    assert sum(groups) == 41
    assert max(groups) == 8


async def test_a_job_that_raises_is_taken_back_alone_and_hears_its_own_exception(
    opened: Open, groups: Groups, gate: Gate
) -> None:
    raised = LookupError("mine")

    def failing(tx: Transaction) -> None:
        tx.put("t", (99,), 99)
        tx.delete("t", (0,))
        raise raised

    storage = await opened()
    results = await queued_behind(gate, storage, putting(0), failing, putting(1))
    assert results == [0, raised, 1]
    assert results[1] is raised
    assert len(groups) <= 2
    assert await storage.view(lambda tx: [key for key, _ in tx.scan("t")]) == [(0,), (1,)]


async def test_a_job_that_raises_after_it_saw_its_writes_in_a_scan_is_taken_back_alone(
    opened: Open, gate: Gate
) -> None:
    seen: list[Any] = []

    def failing(tx: Transaction) -> None:
        tx.put("t", (99,), 99)
        tx.delete("t", (0,))
        seen.extend(key for key, _ in tx.scan("t"))
        tx.put("t", (98,), 98)
        raise LookupError

    storage = await opened()
    await queued_behind(gate, storage, putting(0), failing, putting(1))
    assert seen == [(99,)]
    assert await storage.view(lambda tx: [key for key, _ in tx.scan("t")]) == [(0,), (1,)]


async def test_a_job_sees_what_earlier_jobs_of_its_group_wrote(opened: Open, gate: Gate) -> None:
    def counting(tx: Transaction) -> int:
        number = int(str(tx.get("t", ("n",)) or 0)) + 1
        tx.put("t", ("n",), number)
        return number

    storage = await opened()
    results = await queued_behind(gate, storage, *[counting] * 30)
    assert sorted(results) == list(range(1, 31))


async def test_what_a_job_raises_of_sqlite_itself_comes_out_unchanged(opened: Open) -> None:
    raised = sqlite3.OperationalError("somebody's own")

    def failing(tx: Transaction) -> None:
        raise raised

    storage = await opened()
    for run in (storage.transact, storage.view):
        with pytest.raises(sqlite3.OperationalError) as caught:
            await run(failing)  # type: ignore[arg-type]
        assert caught.value is raised


async def test_a_caller_that_is_cancelled_while_it_queues_wrote_nothing(opened: Open, gate: Gate) -> None:
    storage = await opened()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.transact, gate)
        await gate.is_reached()
        with anyio.CancelScope() as scope:
            tasks.start_soon(cancel_when_blocked, scope)
            await storage.transact(putting(1))
        assert scope.cancelled_caught
        gate.open()
    assert await storage.view(lambda tx: list(tx.scan("t"))) == []


async def test_a_caller_that_is_cancelled_when_its_job_has_begun_gets_its_result(opened: Open, gate: Gate) -> None:
    def slow(tx: Transaction) -> str:
        tx.put("t", (1,), 1)
        gate(tx)
        return "done"

    storage = await opened()
    result = None
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await gate.is_reached()
                scope.cancel()
                gate.open()

            tasks.start_soon(cancel)
            result = await storage.transact(slow)
    assert result == "done"
    assert await storage.view(lambda tx: list(tx.scan("t"))) == [((1,), 1)]


async def cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()
