"""The laws of opening and durability: what a factory makes, finds again, and refuses to make."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_core.errors import StorageMissingError
from opencode_core.ports.storage import Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, put, refused, rows, together, writing
from plugin_sdk.testing.storage.keys import KEYS, in_order

LAW = "opening"
DURABILITY = "durability"


class OpeningLaws(StorageLaws):
    """A store is made where there is none, found again where there is one, and says what it is."""

    async def test_a_new_store_is_empty(self, storage: Storage) -> None:
        names = list(await storage.view(lambda view: view.tables()))
        expect(LAW, "a new store is empty", found=names, wanted=[])

    async def test_a_store_that_is_not_there_is_not_made_unless_asked(self, storage_url: str, tmp_path: Path) -> None:
        before = _everything_in(tmp_path)
        for _ in range(2):
            with refused(LAW, "opening a missing store with create=False", StorageMissingError):
                await (await self.factory(storage_url, create=False)).aclose()
        expect(LAW, "nothing is made where there is no store", found=_everything_in(tmp_path), wanted=before)
        async with self.opened(storage_url) as storage:
            await put(storage, "kept", ("a",), 1)

    async def test_a_healthy_store_has_nothing_wrong(self, storage: Storage) -> None:
        expect(LAW, "check() of a new store", found=list(await storage.check()), wanted=[])
        await storage.transact(_fill)
        await storage.transact(_thin)
        expect(LAW, "check() of a healthy store", found=list(await storage.check()), wanted=[])

    async def test_a_store_tells_what_it_is(self, storage: Storage) -> None:
        await storage.transact(_fill)
        facts = await storage.facts()
        if not facts.kind or not facts.place:
            raise broken(LAW, f"facts() must name a kind and a place, and says {facts!r}")
        if facts.bytes is not None and facts.bytes <= 0:
            raise broken(LAW, f"a store with something in it takes up {facts.bytes} bytes; say None if it is not known")
        if (facts.backup, facts.migrated_from) != (None, None):
            raise broken(LAW, "a new store was not migrated, but facts() says so")

    async def test_a_store_that_was_closed_is_found_again_with_everything_in_it(self, storage_url: str) -> None:
        self._needs_durable()
        async with self.opened(storage_url) as storage:
            await storage.transact(_fill)
            await put(storage, "other", ("a",), {"z": 1, "a": "\ud800"})
            await storage.transact(lambda tx: tx.delete("keys", KEYS[0]))
            before = await rows(storage, "keys")
        for create in (False, True):
            async with self.opened(storage_url, create=create) as storage:
                expect(DURABILITY, "everything is there again", found=await rows(storage, "keys"), wanted=before)
                wanted = sorted(KEYS[1:], key=in_order)
                expect(DURABILITY, "in order", found=[key for key, _ in before], wanted=wanted)
                other = await rows(storage, "other")
                expect(DURABILITY, "every table", found=other, wanted=[(("a",), {"z": 1, "a": "\ud800"})])
                names = [next(iter(document)) for _, document in other if isinstance(document, dict)]
                expect(DURABILITY, "the order of a document's keys", found=names, wanted=["z"])
                expect(DURABILITY, "nothing is wrong", found=list(await storage.check()), wanted=[])

    async def test_a_store_can_be_opened_written_and_closed_many_times(self, storage_url: str) -> None:
        self._needs_durable()
        for turn in range(8):
            async with self.opened(storage_url, create=turn == 0) as storage:
                await put(storage, "turns", (turn,), turn)
        async with self.opened(storage_url, create=False) as storage:
            wanted = [((turn,), turn) for turn in range(8)]
            expect(DURABILITY, "every turn is kept", found=await rows(storage, "turns"), wanted=wanted)

    async def test_a_missing_store_can_be_made_by_several_at_once(self, storage_url: str) -> None:
        self.needs_shared()

        async def make(number: int) -> None:
            async with self.opened(storage_url) as storage:
                await put(storage, "made", (number,), number)

        async with together() as tasks:
            for number in range(4):
                tasks.start_soon(make, number)
        async with self.opened(storage_url, create=False) as storage:
            found = [key for key, _ in await rows(storage, "made")]
            expect(LAW, "four that make one store at once share it", found=found, wanted=[(n,) for n in range(4)])

    async def test_stores_that_are_not_shared_are_apart(self, storage: Storage, storage_url: str) -> None:
        if self.shared:
            pytest.skip("Two stores that are opened with one URL are one store here (shared=True).")
        async with self.opened(storage_url) as other:
            await put(storage, "mine", ("a",), 1)
            expect(LAW, "a store of its own", found=await rows(other, "mine"), wanted=[])

    def _needs_durable(self) -> None:
        if not self.durable:
            pytest.skip("A store that was closed is gone here (durable=False).")


def _everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def _thin(tx: Transaction) -> None:
    for key in KEYS[::3]:
        tx.delete("keys", key)


_fill = writing("keys", {key: {"key": list(key)} for key in KEYS})
