"""The law of wakes: no commit after a block was entered is missed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel

from opencode_core.ports.storage import Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, increment, number, put, together

LAW = "wakes"


class WakeLaws(StorageLaws):
    """Every commit wakes at least once whoever entered the block before it; to know more they read."""

    async def test_a_commit_wakes(self, storage: Storage) -> None:
        async with storage.changes("news") as wakes:
            for number_ in range(3):
                await put(storage, "news", (number_,), number_)
                await self._woken(wakes, "a commit must wake who waits for its table")

    async def test_a_commit_wakes_who_is_already_waiting(self, storage: Storage) -> None:
        async with storage.changes("news", ("a",)) as wakes, together() as tasks:
            tasks.start_soon(self._woken, wakes, "a commit must wake who is waiting already")
            await anyio.wait_all_tasks_blocked()
            await put(storage, "news", ("a", 1), 1)

    async def test_a_commit_below_the_prefix_wakes(self, storage: Storage) -> None:
        for prefix in ((), ("a",), ("a", 1), ("a", 1, "b")):
            async with storage.changes("news", prefix) as wakes:
                await put(storage, "news", ("a", 1, "b"), 1)
                await self._woken(wakes, f"a commit must wake who waits for its prefix {prefix!r}")

    async def test_removing_a_document_wakes(self, storage: Storage) -> None:
        await put(storage, "news", ("a",), 1)
        async with storage.changes("news", ("a",)) as wakes:
            await storage.transact(lambda tx: tx.delete("news", ("a",)))
            await self._woken(wakes, "removing a document must wake")

    async def test_each_table_of_a_transaction_wakes(self, storage: Storage) -> None:
        def write(tx: Transaction) -> None:
            tx.put("one", (1,), 1)
            tx.put("two", (1,), 1)

        async with storage.changes("one") as first, storage.changes("two") as second:
            await storage.transact(write)
            await self._woken(first, "a transaction over two tables must wake who waits for the first")
            await self._woken(second, "a transaction over two tables must wake who waits for the second")

    async def test_a_commit_wakes_everybody_who_waits(self, storage: Storage) -> None:
        async with storage.changes("news") as first, storage.changes("news") as second:
            await put(storage, "news", (1,), 1)
            await self._woken(first, "a commit must wake everybody, also the first")
            await self._woken(second, "a commit must wake everybody, also the second")

    async def test_a_block_that_ended_leaves_others_waking(self, storage: Storage) -> None:
        async with storage.changes("news") as wakes:
            async with storage.changes("news"):
                pass
            await put(storage, "news", (1,), 1)
            await self._woken(wakes, "a commit must wake also after another block has ended")

    async def test_a_wait_that_was_cancelled_misses_nothing(self, storage: Storage) -> None:
        async with storage.changes("news") as wakes:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await anext(wakes)
            await put(storage, "news", (1,), 1)
            await self._woken(wakes, "a commit must wake who waits again after a cancelled wait")

    async def test_many_commits_may_wake_once_and_none_is_lost(self, storage: Storage) -> None:
        await self._expect_all_seen(storage, storage, commits=200)

    async def test_a_commit_in_another_store_wakes(self, storage: Storage, storage_url: str) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other, storage.changes("news", ("a",)) as wakes:
            for number_ in range(3):
                await put(other, "news", ("a", number_), 1)
                await self._woken(wakes, "a commit in another store must wake")

    async def test_no_commit_of_another_store_is_lost(self, storage: Storage, storage_url: str) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            await self._expect_all_seen(storage, other, commits=50)

    async def _woken(self, wakes: AsyncIterator[None], what: str) -> None:
        with self.soon(LAW, what):
            await anext(wakes)

    async def _expect_all_seen(self, reader: Storage, writer: Storage, *, commits: int) -> None:
        entered = anyio.Event()

        async def read() -> None:
            async with reader.changes("news", ("n",)) as wakes:
                entered.set()
                seen = 0
                while True:
                    latest = await reader.view(lambda view: number(view, "news", ("n",)))
                    if latest < seen:
                        raise broken(LAW, f"a reader saw {latest} after {seen}")
                    seen = latest
                    if seen == commits:
                        return
                    await self._woken(wakes, f"who saw {seen} of {commits} commits must be woken for the next")

        async with together() as tasks:
            tasks.start_soon(read)
            await entered.wait()
            for turn in range(commits):
                await writer.transact(increment("news", ("n",)))
                if turn % 7 == 0:
                    await anyio.lowlevel.checkpoint()
