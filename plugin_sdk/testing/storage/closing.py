"""The law of closing: what was asked before finishes, what comes later is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel

from opencode_core.errors import StorageClosedError
from opencode_core.ports.storage import Storage
from plugin_sdk.testing.storage.base import StorageLaws, broken, increment, put, refused, rows, together

LAW = "closing"


class ClosingLaws(StorageLaws):
    """A store is closed once and for all, and nobody is left waiting."""

    async def test_what_comes_after_closing_is_refused(self, storage: Storage) -> None:
        await put(storage, "kept", ("a",), 1)
        await storage.aclose()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "transact()": lambda: storage.transact(lambda tx: tx.put("late", ("a",), 1)),
            "view()": lambda: storage.view(lambda view: view.get("kept", ("a",))),
            "check()": storage.check,
            "facts()": storage.facts,
        }
        for name, call in calls.items():
            with refused(LAW, f"{name} after closing", StorageClosedError):
                await call()
        with refused(LAW, "changes() after closing", StorageClosedError), anyio.fail_after(self.patience):
            async with storage.changes("kept") as wakes:
                await anext(wakes)

    async def test_closing_twice_is_harmless(self, storage: Storage) -> None:
        await storage.aclose()
        await _closed_again(storage)

    async def test_closing_twice_at_once_is_harmless(self, storage: Storage) -> None:
        with self.soon(LAW, "closing must end"):
            async with together() as tasks:
                tasks.start_soon(storage.aclose)
                tasks.start_soon(storage.aclose)

    async def test_closing_ends_those_who_wait_for_changes(self, storage: Storage) -> None:
        async def wait() -> None:
            async with storage.changes("news") as wakes:
                with refused(LAW, "waiting for changes while the store is closed", StorageClosedError):
                    async for _ in wakes:
                        pass
                with refused(LAW, "waiting again after the store was closed", StorageClosedError):
                    await anext(wakes)

        with self.soon(LAW, "closing must end those who wait for changes"):
            async with together() as tasks:
                tasks.start_soon(wait)
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await storage.aclose()

    async def test_calls_that_were_made_before_closing_finish(self, storage: Storage, storage_url: str) -> None:
        returned: list[int] = []
        asked = 0

        async def call() -> None:
            nonlocal asked
            asked += 1
            try:
                returned.append(await storage.transact(increment("queue", ("n",))))
            except StorageClosedError as error:
                raise broken(LAW, "a call that was made before closing was refused") from error

        with self.soon(LAW, "closing must end"):
            async with together() as tasks:
                for _ in range(10):
                    tasks.start_soon(call)
                while asked < 10:
                    await anyio.lowlevel.checkpoint()
                await storage.aclose()
        if sorted(returned) != list(range(1, 11)):
            raise broken(LAW, f"of ten calls that were made before closing only these returned: {sorted(returned)}")
        if self.durable:
            async with self.opened(storage_url, create=False) as again:
                found = await rows(again, "queue")
            if found != [(("n",), {"count": 10})]:
                raise broken(LAW, f"ten calls returned before closing, but afterwards there is {found!a}")

    async def test_a_view_that_was_asked_for_before_closing_finishes(self, storage: Storage) -> None:
        await put(storage, "kept", ("a",), 1)
        found: list[object] = []

        async def look() -> None:
            found.append(0)
            found[-1] = await rows(storage, "kept")

        with self.soon(LAW, "closing must end"):
            async with together() as tasks:
                tasks.start_soon(look)
                while not found:
                    await anyio.lowlevel.checkpoint()
                await storage.aclose()
        if found != [[(("a",), 1)]]:
            raise broken(LAW, f"a view that was asked for before closing found {found!a}")

    async def test_closing_that_is_cancelled_still_closes(self, storage: Storage) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await storage.aclose()
        await _closed_again(storage)
        with refused(LAW, "transact() after closing", StorageClosedError):
            await put(storage, "late", ("a",), 1)


async def _closed_again(storage: Storage) -> None:
    try:
        await storage.aclose()
    except Exception as error:
        raise broken(LAW, f"closing again raises {type(error).__name__}") from error
