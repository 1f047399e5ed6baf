"""Closing lets go of everything, and forgetting to close loses nothing and holds nobody up."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from plugin_sdk.storage import StorageBusyError, StorageClosedError, Transaction
from plugins_builtin.storage_sqlite import files
from plugins_builtin.storage_sqlite.opening import open_store
from tests.storage_sqlite import children
from tests.storage_sqlite.works import putting


async def test_one_file_remains_and_no_thread_and_no_connection(path: Path) -> None:
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(lambda tx: tx.put("t", (1,), 1))
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(storage.view, lambda tx: tx.get("t", (1,)))
    await storage.aclose()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert threads() == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)  # nobody else is here


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("opencode-sqlite")]


def open_files() -> list[str]:
    """Which descriptors are open, where the system tells."""
    return sorted(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else []


async def test_two_who_close_at_once_both_return_when_it_is_closed(path: Path) -> None:
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(lambda tx: tx.put("t", (1,), 1))

    async def close() -> None:
        await storage.aclose()
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(close)
        tasks.start_soon(close)


async def test_closing_waits_for_what_had_begun_even_when_it_is_cancelled(path: Path) -> None:
    storage = await open_store(f"sqlite://{path}")
    begun, end = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> str:
        tx.put("t", (1,), 1)
        begun.set()
        assert end.wait(30)
        return "done"

    results: list[str] = []

    async def write() -> None:
        results.append(await storage.transact(slow))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        assert await anyio.to_thread.run_sync(begun.wait, 30)
        with anyio.CancelScope() as scope:
            scope.cancel()
            threading.Timer(0.05, end.set).start()
            await storage.aclose()
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert results == ["done"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_waits_for_what_had_begun_also_when_asyncio_itself_cancels_it(path: Path) -> None:
    storage = await open_store(f"sqlite://{path}")
    begun, end = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> str:
        begun.set()
        assert end.wait(30)
        tx.put("t", (1,), 1)
        return "done"

    writing = asyncio.create_task(storage.transact(slow))
    assert await anyio.to_thread.run_sync(begun.wait, 30)
    first = asyncio.create_task(storage.aclose())
    await anyio.wait_all_tasks_blocked()
    first.cancel()
    second = asyncio.create_task(storage.aclose())
    await anyio.wait_all_tasks_blocked()
    assert not first.done()
    assert not second.done()
    end.set()
    await asyncio.wait([first, second])
    assert threads() == []
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert await writing == "done"
    await storage.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("outcome", ["opened", "refused"])
async def test_opening_that_asyncio_itself_cancels_leaves_nothing_open(
    path: Path, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    await (await open_store(f"sqlite://{path}")).aclose()
    begun, end = threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> bool:
        begun.set()
        assert end.wait(30)
        if outcome == "refused":
            raise StorageBusyError("It is busy.")
        return look(*arguments, **options)

    look = files.look
    monkeypatch.setattr(files, "look", slow)
    before = open_files()
    opening = asyncio.create_task(open_store(f"sqlite://{path}"))
    assert await anyio.to_thread.run_sync(begun.wait, 30)
    opening.cancel()
    await anyio.wait_all_tasks_blocked()
    assert not opening.done()
    end.set()
    if outcome == "opened":
        await (await opening).aclose()
    else:
        with pytest.raises(StorageBusyError):
            await opening
    assert threads() == []
    assert open_files() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_opening_that_was_cancelled_before_makes_nothing(path: Path) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await open_store(f"sqlite://{path}")
    assert scope.cancelled_caught
    assert threads() == []
    assert list(path.parent.iterdir()) == []


async def test_a_check_that_is_under_way_ends_when_the_store_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plugins_builtin.storage_sqlite.checking.SLICE", 1)
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(putting("t", {(number,): number for number in range(3_000)}))

    async def check() -> None:
        with pytest.raises(StorageClosedError):
            await storage.check()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check)
            await storage.view(lambda tx: None)
            await storage.aclose()


def test_a_program_that_forgets_to_close_ends_and_has_lost_nothing(path: Path) -> None:
    printed = children.output(
        """
        import sys, anyio
        from plugins_builtin.storage_sqlite import open_store
        async def main():
            global storage
            storage = await open_store(f"sqlite://{sys.argv[1]}")
            async def append(session):
                for number in range(20):
                    await storage.transact(lambda tx: tx.put("t", (session, number), number))
            async with anyio.create_task_group() as tasks:
                for session in range(5):
                    tasks.start_soon(append, session)
            await storage.view(lambda tx: None)
            async with storage.changes("t"):
                print("acknowledged")
        anyio.run(main)
        """,
        path,
    )
    assert printed == "acknowledged"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (100,)
