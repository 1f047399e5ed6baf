"""The law of order: keys, tables, and what a scan yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opencode_core.errors import InvalidKeyError
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, put, refused, rows, writing
from plugin_sdk.testing.storage.keys import AFTERS, KEYS, PREFIXES, in_order, scanned, shuffled

LAW = "order"
TABLES = ("a", "z9", "order", "select", "table", "user", "con", "sqlite_master", "pg_class", "a_b", "a__b", "x" * 63)
BAD_TABLES: tuple[Any, ...] = (
    *("", "A", "1a", "_a", "a-b", "a b", "a.b", "a/b", "..", "é", "a\n", "a\x00", "x" * 64, None, 1, b"a"),
)
BAD_PARTS: tuple[Any, ...] = (*(None, 1.0, True, b"a", ("a",), 2**63, -(2**63) - 1, "\ud800", "x" * 1_001, "é" * 501),)


class OrderLaws(StorageLaws):
    """A scan is in the order of the keys, or exactly the reverse, and nothing depends on when something was written."""

    async def test_a_scan_is_in_the_order_of_keys_however_they_were_written(self, storage: Storage) -> None:
        wanted = sorted(KEYS, key=in_order)
        for seed in range(3):
            table = f"order_{seed}"
            await storage.transact(_writes(table, shuffled(KEYS, seed)))
            found = [key for key, _ in await rows(storage, table)]
            _expect_keys(found, wanted)
            backwards = await storage.view(
                lambda view, table=table: [key for key, _ in view.scan(table, reverse=True)]  # type: ignore[misc]
            )
            _expect_keys(backwards, wanted[::-1])

    async def test_every_document_is_found_under_its_own_key(self, storage: Storage) -> None:
        await storage.transact(_writes("keys", shuffled(KEYS, 1)))
        found = await storage.view(lambda view: {key: view.get("keys", key) for key in KEYS})
        for key in KEYS:
            expect(LAW, f"the document under {key!a}", found=found[key], wanted=_document(key))

    async def test_keys_that_look_alike_are_different(self, storage: Storage) -> None:
        alike: tuple[tuple[Key, Key], ...] = (
            *(((1,), ("1",)), (("a",), ("A",)), (("é",), ("e\u0301",)), (("a", "b"), ("a/b",)), (("a",), ("a ",))),
            *((("a",), ("a", "")), (("a\x00",), ("a",)), ((1, 1), (11,)), (("ab",), ("a", "b")), ((0,), (-0, 0))),
        )
        for one, other in alike:
            await put(storage, "alike", one, "there")
            found = await storage.view(lambda view, other=other: view.get("alike", other))  # type: ignore[misc]
            expect(LAW, f"{other!a} is not the key {one!a}", found=found, wanted=None)
            await storage.transact(lambda tx, one=one: tx.delete("alike", one))  # type: ignore[misc]

    async def test_a_scan_answers_to_every_prefix_start_limit_and_direction(self, storage: Storage) -> None:
        await storage.transact(_writes("scans", shuffled(KEYS, 2)))
        documents = {key: _document(key) for key in KEYS}
        await storage.view(lambda view: _expect_all_scans(view, "scans", documents))

    async def test_a_scan_in_a_transaction_sees_what_it_wrote_and_removed(self, storage: Storage) -> None:
        mixed = shuffled(KEYS, 3)
        await storage.transact(_writes("scans", mixed[::2]))
        documents = {key: _document(key) for key in mixed if key not in mixed[::3]}
        documents |= dict.fromkeys(mixed[::5], "replaced")

        def work(tx: Transaction) -> None:
            _writes("scans", mixed[1::2])(tx)
            for key in mixed[::3]:
                tx.delete("scans", key)
            for key in mixed[::5]:
                tx.put("scans", key, "replaced")
            _expect_all_scans(tx, "scans", documents)

        await storage.transact(work)
        await storage.view(lambda view: _expect_all_scans(view, "scans", documents))

    async def test_a_scan_yields_what_was_there_when_it_was_called(self, storage: Storage) -> None:
        await storage.transact(writing("moving", {(n,): n for n in range(10)}))
        for reverse in (False, True):

            def work(tx: Transaction, reverse: bool = reverse) -> list[JSON]:
                scan = tx.scan("moving", reverse=reverse)
                first = next(scan)
                for n in range(1, 9):
                    tx.delete("moving", (n,))
                tx.put("moving", (5,), "changed")
                tx.put("moving", (5, 1), "new")
                found = [document for _, document in (first, *scan)]
                for n in range(10):
                    tx.put("moving", (n,), n)
                tx.delete("moving", (5, 1))
                return found

            wanted = list(range(10))[:: -1 if reverse else 1]
            what = "a scan yields what was there when it was called, whatever is written meanwhile"
            expect(LAW, what, found=await storage.transact(work), wanted=wanted)

    async def test_two_scans_can_be_read_in_turns(self, storage: Storage) -> None:
        await storage.transact(writing("turns", {(n,): n for n in range(50)}))
        pairs = await storage.view(lambda view: list(zip(view.scan("turns"), view.scan("turns"), strict=True)))
        expect(LAW, "two scans do not disturb each other", found=[a == b for a, b in pairs], wanted=[True] * 50)

    async def test_a_negative_limit_is_refused(self, storage: Storage) -> None:
        with refused(LAW, "a scan with limit=-1", ValueError):
            await storage.view(lambda view: list(view.scan("scans", limit=-1)))

    async def test_a_table_in_which_nothing_was_written_is_empty(self, storage: Storage) -> None:
        def work(tx: ReadTransaction) -> tuple[JSON, list[Any], list[Any], list[str]]:
            empty, backwards = list(tx.scan("nothing")), list(tx.scan("nothing", ("a",), reverse=True))
            return tx.get("nothing", ("a",)), empty, backwards, list(tx.tables())

        for found in (await storage.view(work), await storage.transact(work)):
            expect(LAW, "a table in which nothing was written is empty", found=found, wanted=(None, [], [], []))

    async def test_tables_are_apart_and_any_lawful_name_will_do(self, storage: Storage) -> None:
        def write(tx: Transaction) -> None:
            for table in TABLES:
                tx.put(table, ("key",), table)

        await storage.transact(write)
        for table in TABLES:
            expect(LAW, f"the table '{table}'", found=await rows(storage, table), wanted=[(("key",), table)])
        names = list(await storage.view(lambda view: view.tables()))
        expect(LAW, "tables() is sorted and complete", found=names, wanted=sorted(TABLES))

    async def test_a_table_from_which_everything_was_removed_is_not_listed(self, storage: Storage) -> None:
        def work(tx: Transaction) -> list[list[str]]:
            seen = [list(tx.tables())]
            tx.delete("one", (1,))
            seen.append(list(tx.tables()))
            tx.put("two", (1,), 1)
            seen.append(list(tx.tables()))
            return seen

        await put(storage, "one", (1,), 1)
        found = await storage.transact(work)
        expect(LAW, "tables() follows the transaction's own writes", found=found, wanted=[["one"], [], ["two"]])
        names = list(await storage.view(lambda view: view.tables()))
        expect(LAW, "tables() lists what is left", found=names, wanted=["two"])

    async def test_many_tables_live_side_by_side(self, storage: Storage) -> None:
        names = [f"table_{number:03}" for number in range(120)]

        def write(tx: Transaction) -> None:
            for name in names:
                tx.put(name, (0,), name)

        await storage.transact(write)
        expect(LAW, "all tables", found=list(await storage.view(lambda view: view.tables())), wanted=names)

    async def test_a_bad_table_is_refused_and_nothing_is_written(self, storage: Storage) -> None:
        for table in BAD_TABLES:
            await _expect_refused(storage, f"the table {table!a}", table, ("key",))
            with refused(LAW, f"changes of the table {table!a}", InvalidKeyError):
                async with storage.changes(table):
                    pass

    async def test_a_bad_key_is_refused_and_nothing_is_written(self, storage: Storage) -> None:
        await _expect_refused(storage, "an empty key", "keys", ())
        for part in BAD_PARTS:
            for key in ((part,), ("a", part)):
                await _expect_refused(storage, f"a key with {ascii(part)[:40]}", "keys", key)
                await _expect_scan_refused(storage, key)

    async def test_a_key_of_nine_hundred_bytes_is_kept(self, storage: Storage) -> None:
        long: tuple[Key, ...] = (("x" * 900,), ("é" * 450,), ("漢" * 300,), ("p" * 450, "q" * 450), (*("",) * 200, 1))
        await storage.transact(_writes("long", long))
        found = [key for key, _ in await rows(storage, "long")]
        _expect_keys(found, sorted(long, key=in_order))


def _document(key: Key) -> JSON:
    return {"key": list(key)}


def _writes(table: str, keys: Iterable[Key]) -> Callable[[Transaction], None]:
    return writing(table, {key: _document(key) for key in keys})


def _expect_keys(found: list[Key], wanted: list[Key]) -> None:
    if found == wanted:
        return
    if missing := [key for key in wanted if key not in found]:
        raise broken(LAW, f"the keys {missing!a} are missing from a scan")
    if extra := [key for key in found if key not in wanted]:
        raise broken(LAW, f"a scan yields the keys {extra!a} that nobody wrote")
    number = next(n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b)
    raise broken(LAW, f"number {number} of a scan is {found[number]!a}, but it must be {wanted[number]!a}")


def _expect_all_scans(view: ReadTransaction, table: str, documents: Mapping[Key, JSON]) -> None:
    for prefix in PREFIXES:
        for after in AFTERS:
            for reverse in (False, True):
                wanted = scanned(documents, prefix, after, None, reverse)
                for limit in (None, 0, 1, 3):
                    found = list(view.scan(table, prefix, after=after, limit=limit, reverse=reverse))
                    what = f"scan({table!r}, {prefix!a}, after={after!a}, limit={limit}, reverse={reverse})"
                    expect(LAW, what, found=found, wanted=wanted[:limit])


async def _expect_refused(storage: Storage, what: str, table: Any, key: Any) -> None:
    uses: tuple[Callable[[Transaction], object], ...] = (
        lambda tx: tx.get(table, key),
        lambda tx: tx.put(table, key, 1),
        lambda tx: tx.delete(table, key),
        lambda tx: list(tx.scan(table, after=key)),
    )
    for use in uses:

        def work(tx: Transaction, use: Callable[[Transaction], object] = use) -> None:
            tx.put("good", ("good",), 1)
            use(tx)

        with refused(LAW, what, InvalidKeyError):
            await storage.transact(work)
        names = list(await storage.view(lambda view: view.tables()))
        expect(LAW, f"{what} leaves nothing behind", found=names, wanted=[])


async def _expect_scan_refused(storage: Storage, prefix: Any) -> None:
    with refused(LAW, f"a scan with the prefix {ascii(prefix)[:60]}", InvalidKeyError):
        await storage.view(lambda view: list(view.scan("keys", prefix)))
    with refused(LAW, f"changes below {ascii(prefix)[:60]}", InvalidKeyError):
        async with storage.changes("keys", prefix):
            pass
