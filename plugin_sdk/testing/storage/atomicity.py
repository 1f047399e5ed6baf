"""The laws of atomicity and of reading one's own writes. What others do meanwhile is told elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opencode_core.errors import TransactionEndedError
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, get, put, refused, rows, writing

LAW = "atomicity"
OWN = "reading one's own writes"


class Refusal(Exception):
    """What work raises in these tests."""


class AtomicityLaws(StorageLaws):
    """What a transaction wrote is there all at once or never, and it sees its own writes."""

    async def test_what_work_returns_is_returned(self, storage: Storage) -> None:
        result = object()
        for call in (storage.transact, storage.view):
            returned = await call(lambda _: result)
            expect(LAW, "the result of the work itself is returned", found=returned is result, wanted=True)
            expect(LAW, "work may return nothing", found=await call(lambda _: None), wanted=None)

    async def test_what_work_raises_comes_out_unchanged_and_nothing_is_written(self, storage: Storage) -> None:
        await storage.transact(writing("kept", {(n,): n for n in range(5)}))
        before = await rows(storage, "kept")
        refusal = Refusal("no")

        def work(tx: Transaction) -> None:
            tx.put("new", ("a",), 1)
            tx.put("kept", (1,), "replaced")
            tx.put("kept", (9,), "new")
            tx.delete("kept", (2,))
            tx.delete("kept", (3,))
            tx.put("kept", (3,), "again")
            raise refusal

        await _expect_raised(storage, work, refusal)
        what = "work that raises leaves everything as it was"
        expect(LAW, what, found=await rows(storage, "kept"), wanted=before)
        expect(LAW, what, found=await rows(storage, "new"), wanted=[])
        expect(LAW, what, found=list(await storage.view(lambda view: view.tables())), wanted=["kept"])
        await put(storage, "new", ("b",), 2)
        expect(LAW, "the store works on", found=await rows(storage, "new"), wanted=[(("b",), 2)])

    async def test_what_a_views_work_raises_comes_out_unchanged(self, storage: Storage) -> None:
        refusal = Refusal("no")

        def work(_: ReadTransaction) -> None:
            raise refusal

        try:
            await storage.view(work)
        except Refusal as error:
            expect(LAW, "what the work raises comes out unchanged", found=error is refusal, wanted=True)
        else:
            raise broken(LAW, "what the work of a view raises was swallowed")
        await put(storage, "new", ("a",), 1)

    async def test_failing_work_between_others_takes_nothing_of_them_along(self, storage: Storage) -> None:
        refusal = Refusal("no")
        for number in range(20):
            await put(storage, "mixed", (number,), number)

            def work(tx: Transaction, number: int = number) -> None:
                tx.put("mixed", (number,), "wrong")
                tx.put("mixed", (number, "wrong"), "wrong")
                raise refusal

            await _expect_raised(storage, work, refusal)
        wanted = [((number,), number) for number in range(20)]
        expect(LAW, "only the work that failed is undone", found=await rows(storage, "mixed"), wanted=wanted)

    async def test_a_transaction_sees_its_own_writes(self, storage: Storage) -> None:
        await put(storage, "own", ("old",), 1)

        def work(tx: Transaction) -> None:
            expect(OWN, "what was there", found=tx.get("own", ("old",)), wanted=1)
            tx.put("own", ("new",), 2)
            expect(OWN, "a document that was just written", found=tx.get("own", ("new",)), wanted=2)
            tx.put("own", ("old",), 3)
            expect(OWN, "a document that was just replaced", found=tx.get("own", ("old",)), wanted=3)
            tx.delete("own", ("old",))
            expect(OWN, "a document that was just removed", found=tx.get("own", ("old",)), wanted=None)
            expect(OWN, "a scan", found=list(tx.scan("own")), wanted=[(("new",), 2)])
            tx.put("own", ("old",), 4)
            tx.delete("own", ("new",))
            expect(OWN, "a scan", found=list(tx.scan("own")), wanted=[(("old",), 4)])

        await storage.transact(work)
        expect(LAW, "the last writes stand", found=await rows(storage, "own"), wanted=[(("old",), 4)])

    async def test_a_view_that_starts_after_a_transaction_returned_sees_its_result(self, storage: Storage) -> None:
        for number in range(30):
            await put(storage, "seen", ("n",), number)
            expect(OWN, "a view after a commit", found=await get(storage, "seen", ("n",)), wanted=number)

    async def test_a_second_store_sees_the_result_as_soon_as_a_transaction_returned(
        self, storage: Storage, storage_url: str
    ) -> None:
        self.needs_shared()
        async with self.opened(storage_url) as other:
            for number in range(10):
                await put(storage, "seen", ("n",), number)
                expect(OWN, "a view in a second store", found=await get(other, "seen", ("n",)), wanted=number)
                await put(other, "seen", ("m", number), number)
                found = await get(storage, "seen", ("m", number))
                expect(OWN, "a view in the first store", found=found, wanted=number)

    async def test_removing_a_document_that_is_not_there_is_fine(self, storage: Storage) -> None:
        await storage.transact(lambda tx: tx.delete("nothing", ("a",)))
        await put(storage, "gone", ("a",), 1)
        for _ in range(2):
            await storage.transact(lambda tx: tx.delete("gone", ("a",)))
        expect(LAW, "a removed document", found=await get(storage, "gone", ("a",)), wanted=None)

    async def test_removing_a_document_leaves_those_below_it(self, storage: Storage) -> None:
        await storage.transact(writing("tree", {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1}))
        await storage.transact(lambda tx: tx.delete("tree", ("a", "b")))
        wanted = [(("a",), 1), (("a", "b", "c"), 1)]
        expect(LAW, "only the document with that very key is removed", found=await rows(storage, "tree"), wanted=wanted)

    async def test_five_thousand_documents_are_written_at_once_or_not_at_all(self, storage: Storage) -> None:
        refusal = Refusal("no")

        def work(tx: Transaction, *, fail: bool) -> None:
            for number in range(5_000):
                tx.put(f"many_{number % 3}", ("n", number), {"number": number, "text": "text " * 10})
            if fail:
                raise refusal

        await _expect_raised(storage, lambda tx: work(tx, fail=True), refusal)
        expect(LAW, "nothing is left", found=list(await storage.view(lambda view: view.tables())), wanted=[])
        await storage.transact(lambda tx: work(tx, fail=False))
        counts = await storage.view(lambda view: [len(list(view.scan(f"many_{n}"))) for n in range(3)])
        expect(LAW, "everything is there", found=counts, wanted=[1_667, 1_667, 1_666])

    async def test_a_view_cannot_write(self, storage: Storage) -> None:
        await put(storage, "kept", ("a",), 1)
        uses: tuple[Callable[[Any], object], ...] = (
            lambda view: view.put("kept", ("a",), 2),
            lambda view: view.put("kept", ("b",), 2),
            lambda view: view.delete("kept", ("a",)),
        )
        for use in uses:
            with refused(LAW, "writing to a view", Exception):
                await storage.view(use)
            found = await rows(storage, "kept")
            expect(LAW, "a view writes nothing", found=found, wanted=[(("a",), 1)])

    async def test_a_transaction_cannot_be_used_after_its_end(self, storage: Storage) -> None:
        kept: list[Any] = []

        def fail(tx: Transaction) -> None:
            kept.append(tx)
            raise Refusal("no")

        await storage.transact(kept.append)
        await storage.view(kept.append)
        await _expect_raised(storage, fail, None)
        for ended in kept:
            _expect_ended(ended, is_view=ended is kept[1])
        expect(LAW, "nothing was written", found=list(await storage.view(lambda view: view.tables())), wanted=[])


async def _expect_raised(storage: Storage, work: Callable[[Transaction], None], refusal: Refusal | None) -> None:
    try:
        await storage.transact(work)
    except Refusal as error:
        if refusal is not None:
            expect(LAW, "what the work raises comes out unchanged", found=error is refusal, wanted=True)
    except Exception as error:
        raise broken(LAW, f"the work raised Refusal, and {type(error).__name__} came out") from error
    else:
        raise broken(LAW, "what the work raises was swallowed")


def _expect_ended(ended: Any, *, is_view: bool) -> None:
    uses: dict[str, Callable[[], object]] = {
        "get": lambda: ended.get("kept", ("a",)),
        "scan": lambda: list(ended.scan("kept")),
        "tables": lambda: ended.tables(),
    }
    if not is_view:
        uses |= {"put": lambda: ended.put("kept", ("a",), 1), "delete": lambda: ended.delete("kept", ("a",))}
    for name, use in uses.items():
        try:
            use()
        except TransactionEndedError:
            continue
        except Exception as error:
            what = f"{name}() after the end must raise TransactionEndedError, not {type(error).__name__}"
            raise broken(LAW, what) from error
        raise broken(LAW, f"{name}() can be used after the end of its transaction")
