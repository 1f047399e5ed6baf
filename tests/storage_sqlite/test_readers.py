"""Views read one snapshot, beside the writer and each other."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from plugin_sdk.storage import JSON, Key, ReadTransaction, Transaction, TransactionEndedError
from plugins_builtin.storage_sqlite import readers
from tests.storage_sqlite.conftest import Open
from tests.storage_sqlite.works import putting


async def test_views_are_answered_while_a_transaction_is_open(opened: Open) -> None:
    storage = await opened()
    await storage.transact(lambda tx: tx.put("t", (1,), "before"))
    begun, end = threading.Event(), threading.Event()

    def long(tx: Transaction) -> None:
        tx.put("t", (1,), "after")
        list(tx.scan("t"))  # so that it is written, though not committed
        begun.set()
        assert end.wait(30)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.transact, long)
        assert await anyio.to_thread.run_sync(begun.wait, 30)
        found = [await storage.view(lambda tx: tx.get("t", (1,))) for _ in range(10)]
        end.set()
    assert found == ["before"] * 10
    assert await storage.view(lambda tx: tx.get("t", (1,))) == "after"


async def test_a_transaction_commits_while_a_view_is_open_and_the_view_does_not_see_it(opened: Open) -> None:
    storage = await opened()
    await storage.transact(lambda tx: tx.put("t", (1,), "before"))
    looked, written = threading.Event(), threading.Event()
    seen: list[JSON] = []

    def long(tx: ReadTransaction) -> None:
        seen.append(tx.get("t", (1,)))
        looked.set()
        assert written.wait(30)
        seen.append(tx.get("t", (1,)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.view, long)
        assert await anyio.to_thread.run_sync(looked.wait, 30)
        await storage.transact(lambda tx: tx.put("t", (1,), "after"))
        written.set()
    assert seen == ["before", "before"]


async def test_at_most_four_views_run_at_once_and_all_others_wait_their_turn(opened: Open) -> None:
    storage = await opened()
    lock, running, most = threading.Lock(), 0, 0
    full = threading.Barrier(readers.MOST_THREADS)

    def work(tx: ReadTransaction) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        full.wait(30)
        with lock:
            running -= 1
        full.wait(30)

    async with anyio.create_task_group() as tasks:
        for _ in range(readers.MOST_THREADS * 5):
            tasks.start_soon(storage.view, work)
    assert most == readers.MOST_THREADS


async def test_one_view_after_another_needs_one_thread(opened: Open) -> None:
    storage = await opened()
    used = {await storage.view(lambda tx: threading.get_ident()) for _ in range(20)}
    assert len(used) == 1


async def test_a_scan_that_is_left_halfway_does_not_hold_the_next_view_to_an_old_snapshot(opened: Open) -> None:
    storage = await opened()
    await storage.transact(putting("t", {(n,): n for n in range(1_000)}))
    left: list[Any] = []

    def leave(tx: ReadTransaction) -> tuple[Key, JSON]:
        left.append(tx.scan("t"))
        return next(left[0])

    assert await storage.view(leave) == ((0,), 0)
    await storage.transact(lambda tx: tx.put("t", (0,), "new"))
    assert await storage.view(lambda tx: tx.get("t", (0,))) == "new"
    with pytest.raises(TransactionEndedError):
        list(left[0])


async def test_a_view_cannot_write_even_through_the_connection_below(opened: Open) -> None:
    storage = await opened()

    def write(tx: Any) -> None:
        tx._connection.execute("DELETE FROM documents")

    with pytest.raises(Exception, match="readonly"):
        await storage.view(write)
    assert await storage.view(lambda tx: tx.tables()) == []
