"""Every table and key that the port allows can be written and read, and so can every document that was written."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin_sdk.storage import (
    InvalidDocumentError,
    Key,
    ReadTransaction,
    StorageDamagedError,
    StorageError,
    Transaction,
)
from plugin_sdk.storage.documents import DEEPEST
from plugins_builtin.storage_jsonfiles import open_store
from tests.storage_jsonfiles import v1_store
from tests.storage_jsonfiles.v1_store import contents, url

DEEP: Key = (0,) * 450


@pytest.fixture
def few_calls() -> Iterator[None]:
    """Let calls nest less deeply, because a key as long as the usual limit would take long to walk to."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


async def test_a_table_may_have_the_name_of_the_file_with_the_number_of_the_layout(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    await storage.transact(lambda tx: tx.put("migration", ("a", 1), "x"))
    await storage.aclose()
    storage = await open_store(url(tmp_path / "storage"))

    def read(tx: ReadTransaction) -> object:
        return tx.get("migration", ("a", 1)), list(tx.scan("migration")), list(tx.tables())

    found = await storage.view(read)
    right = await storage.check()
    await storage.transact(lambda tx: tx.delete("migration", ("a", 1)))
    tables = await storage.view(lambda tx: list(tx.tables()))
    await storage.aclose()

    assert found == ("x", [(("a", 1), "x")], ["migration"])
    assert right == []
    assert tables == []
    assert contents(tmp_path / "storage") == {"migration": b"2"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.usefixtures("few_calls")
async def test_a_key_may_have_more_parts_than_calls_can_nest(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))

    def read(tx: ReadTransaction) -> object:
        return tx.get("t", DEEP), list(tx.scan("t")), list(tx.scan("t", (0,), reverse=True)), list(tx.tables())

    def write(tx: Transaction) -> None:
        tx.put("t", DEEP, 1)
        tx.put("t", (1,), 2)

    await storage.transact(write)
    try:
        found = await storage.view(read)
        right = await storage.check()
        size = (await storage.facts()).bytes
    finally:
        await storage.transact(lambda tx: tx.delete("t", DEEP))  # else nobody can remove the folder after the test
        await storage.aclose()

    assert found == (1, [(DEEP, 1), ((1,), 2)], [(DEEP, 1)], ["t"])
    assert right == []
    assert size is not None
    assert size > 0


async def test_a_document_is_as_deep_as_every_reader_can_read(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    deep: list[object] = []
    for _ in range(DEEPEST - 1):
        deep = [deep]
    await storage.transact(lambda tx: tx.put("t", ("a",), deep))  # type: ignore[arg-type]
    found = await storage.view(lambda tx: tx.get("t", ("a",)))
    with pytest.raises(InvalidDocumentError):
        await storage.transact(lambda tx: tx.put("t", ("a",), [deep]))  # type: ignore[list-item]
    await storage.aclose()

    assert found == deep


async def test_a_file_that_is_nested_too_deeply_to_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    storage = await open_store(url(root))
    v1_store.write(root / "t/deep.json", b"[" * 100_000 + b"]" * 100_000)

    with pytest.raises(StorageError, match="nested too deeply") as failed:
        await storage.view(lambda tx: tx.get("t", ("deep",)))
    wrong = await storage.check()
    await storage.aclose()

    assert not isinstance(failed.value, StorageDamagedError)
    assert "move it away" not in str(failed.value)
    assert wrong == [f"The file '{root}/t/deep.json' is nested too deeply to be read."]
