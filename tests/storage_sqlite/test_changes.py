"""Whoever waits is woken by this process' commits exactly, and by every other process' commits."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from plugin_sdk.storage import Storage
from plugins_builtin.storage_sqlite.opening import open_store
from tests.storage_sqlite import children
from tests.storage_sqlite.conftest import Open
from tests.storage_sqlite.works import putting

COMMIT = """
import sys, anyio
from plugins_builtin.storage_sqlite import open_store
async def main():
    storage = await open_store(f"sqlite://{sys.argv[1]}")
    await storage.transact(lambda tx: tx.put("t", ("other", "process"), 1))
    await storage.aclose()
anyio.run(main)
"""


@pytest.mark.parametrize("busy", [False, True])
async def test_a_commit_of_another_process_wakes(opened: Open, path: Path, busy: bool) -> None:
    storage = await opened()
    with anyio.fail_after(40):
        async with storage.changes("t", ("other",)) as wakes, anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, children.output, COMMIT, path)
            if busy:  # the thread that looks is also the one that writes
                tasks.start_soon(keep_writing, storage, tasks.cancel_scope)
            while await storage.view(lambda tx: tx.get("t", ("other", "process"))) is None:
                await anext(wakes)
            tasks.cancel_scope.cancel()


async def keep_writing(storage: Storage, scope: anyio.CancelScope) -> None:
    while not scope.cancel_called:
        await storage.transact(lambda tx: tx.put("u", ("mine",), 1))


async def test_what_another_store_commits_right_after_entering_is_not_missed(opened: Open, path: Path) -> None:
    storage, other = await opened(), await open_store(f"sqlite://{path}")
    for number in range(20):
        with anyio.fail_after(30):
            async with storage.changes("t") as wakes:
                await other.transact(putting("t", {(number,): number}))
                await anext(wakes)
    await other.aclose()


async def test_own_commits_elsewhere_wake_nobody(opened: Open) -> None:
    storage = await opened()
    woken: set[str] = set()

    async def listen(table: str, ready: anyio.Event) -> None:
        async with storage.changes(table, ("a",)) as wakes:
            ready.set()
            async for _ in wakes:
                woken.add(table)

    async with anyio.create_task_group() as tasks:
        for table in ("mine", "yours"):
            ready = anyio.Event()
            tasks.start_soon(listen, table, ready)
            await ready.wait()
        # Each commit makes the writer look around, so any mistake would show in one of them.
        for number in range(30):
            await storage.transact(putting("mine", {("a", number): number}))
            await storage.transact(putting("mine", {("b", number): number}))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert woken == {"mine"}
