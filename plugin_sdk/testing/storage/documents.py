"""The law of documents: what is read is what was written, and nobody else can change it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from opencode_core.errors import InvalidDocumentError
from opencode_core.model.json import JSON
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction
from plugin_sdk.testing.storage.base import StorageLaws, broken, expect, get, put, refused, rows

LAW = "documents"


def _nested(depth: int) -> JSON:
    document: JSON = "deep"
    for level in range(depth):
        document = [document] if level % 2 else {"in": document}
    return document


DOCUMENTS: tuple[JSON, ...] = (
    True,
    False,
    0,
    -1,
    1.0,
    -0.0,
    0.1,
    1e300,
    5e-324,
    2**53 + 1,
    -(2**63) - 1,
    10**100,
    "",
    " ",
    "null",
    "quote \" backslash \\ slash / apostrophe '",
    "line\nfeed\r\ttab \x00 zero \x1f unit \x7f delete \x85 \u2028 \u2029",
    "ünïcödé 漢字 \U0001f600 e\u0301 \ufeff \uffff \U0010ffff",
    "a lone surrogate \ud800 and another \udfff",
    [],
    {},
    [None, [None], {"null": None}],
    {"z": 1, "a": 2, "m": {"2": 1, "10": 2, "1": 3}},
    {"": "an empty name", " ": 1, "\x00": "zero", "é": 1, "e\u0301": 2, "\ud800": "lone"},
    {"a": 1, "A": 2, "__class__": 3, "$ref": 4, "a.b": 5, "'; --": 6},
    _nested(100),
)


class DocumentLaws(StorageLaws):
    """What is read equals what was written, in the order of its keys too, and belongs to whoever holds it."""

    async def test_a_document_is_read_as_it_was_written(self, storage: Storage) -> None:
        def write(tx: Transaction) -> None:
            for number, document in enumerate(DOCUMENTS):
                tx.put("documents", (number,), document)

        await storage.transact(write)
        scanned = [document for _, document in await rows(storage, "documents")]
        for number, document in enumerate(DOCUMENTS):
            _expect_same(await get(storage, "documents", (number,)), document)
            _expect_same(scanned[number], document)

    async def test_a_document_is_read_in_its_transaction_as_it_was_written(self, storage: Storage) -> None:
        def write(tx: Transaction) -> list[tuple[JSON, JSON]]:
            for number, document in enumerate(DOCUMENTS):
                tx.put("documents", (number,), document)
            return [(tx.get("documents", (number,)), document) for number, document in enumerate(DOCUMENTS)]

        for found, wanted in await storage.transact(write):
            _expect_same(found, wanted)

    async def test_a_mapping_and_a_tuple_are_read_as_what_they_equal_in_json(self, storage: Storage) -> None:
        document: JSON = MappingProxyType({"tuple": (1, ("two",)), "proxy": MappingProxyType({"b": 1, "a": ()})})
        await put(storage, "documents", ("mapping",), document)
        _expect_same(await get(storage, "documents", ("mapping",)), {"tuple": [1, ["two"]], "proxy": {"b": 1, "a": []}})

    async def test_a_large_document_is_read_as_it_was_written(self, storage: Storage) -> None:
        large: JSON = {"text": "0123456789abcdeé" * 65_536, "list": list(range(10_000)), "end": "\x00"}
        await put(storage, "documents", ("large",), large)
        _expect_same(await get(storage, "documents", ("large",)), large)
        _expect_same((await rows(storage, "documents"))[0][1], large)

    async def test_the_last_of_many_documents_under_one_key_stays(self, storage: Storage) -> None:
        for number in range(3):
            await put(storage, "documents", ("same",), {"number": number, "text": "x" * (10 - 5 * number)})
        expect(
            LAW,
            "a later document replaces the one under its key",
            found=await rows(storage, "documents"),
            wanted=[(("same",), {"number": 2, "text": ""})],
        )

    async def test_changing_a_document_that_was_written_changes_nothing(self, storage: Storage) -> None:
        document: Any = {"list": [1], "mapping": {"a": 1}}

        def write(tx: Transaction) -> JSON:
            tx.put("documents", ("mine",), document)
            _spoil(document)
            return tx.get("documents", ("mine",))

        found = await storage.transact(write)
        what = "changing a document after it was written must not change the store"
        expect(LAW, what, found=found, wanted={"list": [1], "mapping": {"a": 1}})
        _spoil(document)
        found = await get(storage, "documents", ("mine",))
        expect(LAW, what, found=found, wanted={"list": [1], "mapping": {"a": 1}})

    async def test_changing_a_document_that_was_read_changes_nothing(self, storage: Storage) -> None:
        wanted: JSON = {"list": [1], "mapping": {"a": 1}}
        await put(storage, "documents", ("mine",), wanted)

        def spoil(tx: ReadTransaction) -> JSON:
            _spoil(tx.get("documents", ("mine",)))
            _spoil(next(tx.scan("documents"))[1])
            return tx.get("documents", ("mine",))

        what = "changing a document that was read must not change the store"
        expect(LAW, what, found=await storage.view(spoil), wanted=wanted)
        expect(LAW, what, found=await storage.transact(spoil), wanted=wanted)
        expect(LAW, what, found=await get(storage, "documents", ("mine",)), wanted=wanted)

    async def test_null_and_what_is_not_json_is_refused_and_nothing_is_written(self, storage: Storage) -> None:
        circle: Any = []
        circle.append(circle)
        nan, infinite = float("nan"), float("inf")
        bad: tuple[Any, ...] = (None, nan, [infinite], {"a": -infinite}, {1, 2}, b"bytes", object(), circle)
        for document in (*bad, {"a": [object()]}, {1: "a name that is a number"}, {"a": {None: 1}}, {("a",): 1}):

            def work(tx: Transaction, document: Any = document) -> None:
                tx.put("documents", ("good",), 1)
                tx.put("documents", ("bad",), document)

            with refused(LAW, f"writing {_named(document)}", InvalidDocumentError):
                await storage.transact(work)
            expect(LAW, "a refused document leaves nothing behind", found=await rows(storage, "documents"), wanted=[])

    async def test_a_transaction_goes_on_after_a_refused_document(self, storage: Storage) -> None:
        def work(tx: Transaction) -> None:
            tx.put("documents", ("before",), 1)
            with refused(LAW, "writing null", InvalidDocumentError):
                tx.put("documents", ("bad",), None)
            tx.put("documents", ("after",), 2)

        await storage.transact(work)
        wanted = [(("after",), 2), (("before",), 1)]
        expect(LAW, "what was not refused is written", found=await rows(storage, "documents"), wanted=wanted)


def _expect_same(found: JSON, wanted: JSON) -> None:
    if not _same(found, wanted):
        raise broken(LAW, f"{_named(wanted)} was written, and {_named(found)} is read")


def _same(found: JSON, wanted: JSON) -> bool:
    """Whether two documents are one in JSON, which knows one kind of number, in the order of their names too."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(wanted)
            and all(_same(found[name], wanted[name]) for name in wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_same(one, other) for one, other in zip(found, wanted, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    return found == wanted


def _named(document: object) -> str:
    text = ascii(document)
    return f"{text[:200]} ({type(document).__name__})"


def _spoil(document: Any) -> None:
    if not isinstance(document, dict):
        raise broken(LAW, f"a mapping was written, and {_named(document)} is read")
    document["list"].append("spoilt")
    document["mapping"]["a"] = "spoilt"
    document["spoilt"] = True
