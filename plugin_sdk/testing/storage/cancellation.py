"""The law of cancellation: a cancelled call wrote nothing and says so, or finished and returns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import anyio
import anyio.lowlevel
import pytest

from opencode_core.ports.storage import Storage
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, increment, number, put, rows, together

LAW = "cancellation"
CALLS = 40


class CancellationLaws(StorageLaws):
    """The caller never has to guess, and the store works on."""

    async def test_a_call_that_was_cancelled_before_it_began_writes_nothing(self, storage: Storage) -> None:
        for _ in range(5):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await put(storage, "late", ("a",), 1)
            expect(LAW, "a cancelled call raises the cancellation", found=scope.cancelled_caught, wanted=True)
        expect(LAW, "a cancelled call writes nothing", found=await rows(storage, "late"), wanted=[])
        await put(storage, "late", ("b",), 2)
        expect(LAW, "the store works on", found=await rows(storage, "late"), wanted=[(("b",), 2)])

    async def test_a_view_that_was_cancelled_leaves_the_store_working(self, storage: Storage) -> None:
        await put(storage, "kept", ("a",), 1)
        with anyio.CancelScope() as cancelled:
            cancelled.cancel()
            await rows(storage, "kept")
        for turns in range(10):
            await _cancelled_after(lambda: rows(storage, "kept"), _turns(turns % 5))
        expect(LAW, "the store works on", found=await rows(storage, "kept"), wanted=[(("a",), 1)])

    async def test_exactly_the_calls_that_returned_have_written(self, storage: Storage) -> None:
        with self.soon(LAW, "every cancelled call must end"):
            returned = await _storm(storage, _cancelled_after)
        await _expect_counted(storage, returned)

    async def test_exactly_the_calls_that_returned_have_written_also_with_cancel_of_asyncio(
        self, storage: Storage
    ) -> None:
        if not _on_asyncio():
            pytest.skip("Only asyncio can cancel a task from outside.")
        with self.soon(LAW, "every cancelled call must end"):
            returned = await _storm(storage, _cancelled_as_task)
        await _expect_counted(storage, returned)

    async def test_a_call_with_a_deadline_returned_or_wrote_nothing(self, storage: Storage) -> None:
        random, returned = Random(3), 0
        for _ in range(CALLS):
            with anyio.move_on_after(random.random() * 0.004):
                await storage.transact(increment("storm", ("n",)))
                returned += 1
        await _expect_counted(storage, returned)


Wait = Callable[[], Awaitable[None]]
Cancelled = Callable[[Callable[[], Awaitable[object]], Wait], Awaitable[bool]]


async def _storm(storage: Storage, cancelled_after: Cancelled) -> int:
    """Makes many calls at once, cancels them at moments that differ, and returns how many returned."""
    random, returned = Random(7), 0

    async def call(wait: Wait) -> None:
        nonlocal returned
        if await cancelled_after(lambda: storage.transact(increment("storm", ("n",))), wait):
            returned += 1

    for round_ in range(4):
        async with together() as tasks:
            for number_ in range(CALLS // 4):
                delay = random.random() * 0.01
                tasks.start_soon(call, _turns(number_) if round_ % 2 else _sleep(delay))
    return returned


async def _cancelled_after(call: Callable[[], Awaitable[object]], wait: Wait) -> bool:
    """Cancels the scope around a call; returns whether the call returned."""
    returned = False

    async def cancel(scope: anyio.CancelScope) -> None:
        await wait()
        scope.cancel()

    async with together() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(cancel, scope)
            await call()
            returned = True
    return returned


async def _cancelled_as_task(call: Callable[[], Awaitable[object]], wait: Wait) -> bool:
    """Cancels the task of a call, as asyncio does; returns whether the call returned."""
    returned = False

    async def run() -> None:
        nonlocal returned
        await call()
        returned = True

    task = asyncio.ensure_future(run())
    await wait()
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return returned


async def _expect_counted(storage: Storage, returned: int) -> None:
    count = await storage.view(lambda view: number(view, "storm", ("n",)))
    if count > returned:
        raise broken(LAW, f"{count - returned} calls wrote, but raised the cancellation instead of returning")
    expect(LAW, "every call that returned has written", found=count, wanted=returned)
    after = await storage.transact(increment("storm", ("n",)))
    expect(LAW, "the store works on", found=after, wanted=returned + 1)


def _turns(count: int) -> Wait:
    async def wait() -> None:
        for _ in range(count):
            await anyio.lowlevel.checkpoint()

    return wait


def _sleep(seconds: float) -> Wait:
    async def wait() -> None:
        await anyio.sleep(seconds)

    return wait


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
