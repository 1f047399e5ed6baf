"""The law of serialisability: any history could have happened one at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel

from opencode_core.model.json import JSON
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, increment, number, rows, together

LAW = "serialisability"

Call: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class SerialisabilityLaws(StorageLaws):
    """What a transaction read is still true when it commits, whoever else writes meanwhile."""

    async def test_no_update_is_lost(self, storage: Storage) -> None:
        await _expect_all_counted([storage])

    async def test_no_update_is_lost_between_two_stores(self, storage: Storage, storage_url: str) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            await _expect_all_counted([storage, other])

    async def test_no_update_is_lost_between_four_stores(self, storage_url: str) -> None:
        self.needs_shared()
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(self.opened(storage_url)) for _ in range(4)]
            await _expect_all_counted(stores)

    async def test_two_transactions_that_read_each_others_documents_do_not_both_write(self, storage: Storage) -> None:
        await _expect_somebody_on_call(storage, storage)

    async def test_two_stores_that_read_each_others_documents_do_not_both_write(
        self, storage: Storage, storage_url: str
    ) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            await _expect_somebody_on_call(storage, other)

    async def test_what_a_scan_did_not_find_is_not_there_at_the_commit(self, storage: Storage) -> None:
        await _expect_one_claim(storage, storage)

    async def test_what_a_scan_did_not_find_in_one_store_was_not_written_in_another(
        self, storage: Storage, storage_url: str
    ) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            await _expect_one_claim(storage, other)

    async def test_a_view_never_sees_half_a_transaction(self, storage: Storage) -> None:
        await _expect_twins_equal(storage, storage)

    async def test_a_view_never_sees_half_a_transaction_of_another_store(
        self, storage: Storage, storage_url: str
    ) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            await _expect_twins_equal(storage, other)

    async def test_views_never_go_back_in_time(self, storage: Storage) -> None:
        async def write() -> None:
            for _ in range(40):
                await storage.transact(increment("time", ("n",)))

        async def read() -> None:
            latest = 0
            while latest < 40:
                seen = await storage.view(lambda view: number(view, "time", ("n",)))
                if seen < latest:
                    raise broken(LAW, f"a view saw {seen} after an earlier one saw {latest}")
                latest = seen
                await anyio.lowlevel.checkpoint()

        with self.soon(LAW, "every commit must be seen"):
            await _together([write, read, read])


async def _together(calls: Sequence[Call]) -> None:
    async with together() as tasks:
        for call in calls:
            tasks.start_soon(call)


async def _expect_all_counted(stores: Sequence[Storage]) -> None:
    returned: list[int] = []

    def counting(storage: Storage) -> Call:
        async def count() -> None:
            for _ in range(5):
                count = await storage.transact(increment("counts", ("n",)))
                returned.append(count)

        return count

    calls = [counting(stores[n % len(stores)]) for n in range(8)]
    await _together(calls)
    count = await stores[-1].view(lambda view: number(view, "counts", ("n",)))
    expect(LAW, "eight tasks that count to five each, at once, count to forty", found=count, wanted=40)
    expect(LAW, "each of them saw a count of its own", found=sorted(returned), wanted=list(range(1, 41)))


async def _expect_somebody_on_call(one: Storage, other: Storage) -> None:
    def leaves(me: str, colleague: str, shift: int) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            if tx.get("on_call", (shift, colleague)) is True:
                tx.put("on_call", (shift, me), False)

        return work

    def leaving(storage: Storage, me: str, colleague: str, shift: int) -> Call:
        async def leave() -> None:
            await storage.transact(leaves(me, colleague, shift))

        return leave

    for shift in range(10):

        def begin(tx: Transaction, shift: int = shift) -> None:
            tx.put("on_call", (shift, "ann"), True)
            tx.put("on_call", (shift, "bob"), True)

        await one.transact(begin)
        await _together([leaving(one, "ann", "bob", shift), leaving(other, "bob", "ann", shift)])
        left = sorted(str(document) for _, document in await rows(one, "on_call", (shift,)))
        what = "two that each leave only while the other stays cannot both have left (write skew)"
        expect(LAW, what, found=left, wanted=["False", "True"])


async def _expect_one_claim(one: Storage, other: Storage) -> None:
    def claiming(storage: Storage, who: int, place: int) -> Call:
        def work(tx: Transaction) -> None:
            if not list(tx.scan("claims", (place,), limit=1)):
                tx.put("claims", (place, who), who)

        async def claim() -> None:
            await storage.transact(work)

        return claim

    for place in range(8):
        await _together([claiming((one, other)[who % 2], who, place) for who in range(4)])
        claims = await rows(one, "claims", (place,))
        what = "four that write only where a scan finds nothing cannot both write (phantom)"
        expect(LAW, what, found=len(claims), wanted=1)


async def _expect_twins_equal(writer: Storage, reader: Storage) -> None:
    done = anyio.Event()

    def grow(tx: Transaction) -> None:
        count = number(tx, "twins", ("left",)) + 1
        tx.put("twins", ("left",), {"count": count})
        tx.put("twins", ("middle", count), count)
        tx.put("twins", ("right",), {"count": count})

    def look(view: ReadTransaction) -> list[JSON]:
        left, right = number(view, "twins", ("left",)), number(view, "twins", ("right",))
        return [left, right, len(list(view.scan("twins", ("middle",)))), number(view, "twins", ("left",))]

    async def write() -> None:
        for _ in range(40):
            await writer.transact(grow)
        done.set()

    async def read() -> None:
        pauses = Random(5)
        while not done.is_set():
            seen = await reader.view(look)
            expect(LAW, "two documents that are always written together", found=seen, wanted=[seen[0]] * 4)
            for _ in range(pauses.randrange(1, 5)):  # never in step with the writer
                await anyio.lowlevel.checkpoint()

    await _together([write, read, read])
    expect(LAW, "the end", found=await reader.view(look), wanted=[40] * 4)
