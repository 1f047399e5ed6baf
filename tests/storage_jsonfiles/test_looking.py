"""Whoever only looks at a store of the first generation leaves no trace in it, and is right all the same."""

import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from plugin_sdk.storage import JSON, ReadTransaction, Storage, StorageBusyError, Transaction
from plugins_builtin.storage_jsonfiles import open_store
from tests.storage_jsonfiles import v1_store
from tests.storage_jsonfiles.children import child, heard
from tests.storage_jsonfiles.v1_store import contents, paths, url

DIES = """
def stop(*arguments):
    say("dying")
    signal.pause()

async def main():
    storage = await open_store(URL)
    Files.write = stop
    await storage.transact(lambda tx: tx.put("t", ("a",), 1))

anyio.run(main)
"""

HOLDS = """
def work(tx):
    say("holding")
    hear()

async def main():
    storage = await open_store(URL)
    await storage.transact(work)

anyio.run(main)
"""


async def open_to_look(root: Path, switches: str = "") -> Storage:
    return await open_store(url(root, switches), create=False, migrate=False)


async def test_looking_changes_nothing_on_the_disk(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    before = paths(tmp_path), contents(tmp_path), root.stat().st_mtime_ns

    storage = await open_to_look(root)
    tables = await storage.view(lambda tx: list(tx.tables()))
    wrong = await storage.check()
    facts = await storage.facts()
    async with storage.changes("session"):
        pass
    while_open = paths(tmp_path)
    await storage.aclose()

    assert tables == ["message", "part", "project", "session", "session_diff", "share"]
    assert wrong == []
    assert facts.bytes == sum(map(len, contents(root).values()))
    assert while_open == before[0]
    assert (paths(tmp_path), contents(tmp_path), root.stat().st_mtime_ns) == before


async def test_who_looks_reads_what_another_wrote_with_a_journal_since(tmp_path: Path) -> None:
    storage = await open_to_look(v1_store.build(tmp_path / "storage"))
    none = await storage.view(lambda tx: tx.get("t", ("a",)))
    with child(DIES, url(tmp_path / "storage")) as process:
        assert await anyio.to_thread.run_sync(heard, process) == "dying"
    found = await storage.view(lambda tx: tx.get("t", ("a",)))
    await storage.aclose()

    assert (none, found) == (None, 1)


@pytest.mark.parametrize("how", ["view", "check", "facts"])
async def test_who_looks_waits_for_one_who_began_to_write_since(tmp_path: Path, how: str) -> None:
    storage = await open_to_look(v1_store.build(tmp_path / "storage"), "?timeout=0.05")
    look = {"view": lambda: storage.view(lambda tx: None), "check": storage.check, "facts": storage.facts}[how]
    await look()
    with child(HOLDS, url(tmp_path / "storage")) as process:
        assert await anyio.to_thread.run_sync(heard, process) == "holding"
        with pytest.raises(StorageBusyError):
            await look()
    await look()
    await storage.aclose()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_view_during_which_somebody_began_to_write_is_run_again(tmp_path: Path, fails: bool) -> None:
    root = v1_store.build(tmp_path / "storage")
    v1_store.write(root / "t/a.json", b'"before"')
    v1_store.write(root / "t/b.json", b'"before"')
    looker = await open_to_look(root)
    begun, written = threading.Event(), threading.Event()
    seen: list[JSON] = []

    def look(tx: ReadTransaction) -> tuple[JSON, JSON]:
        first = tx.get("t", ("a",))
        begun.set()
        assert written.wait(30)
        both = (first, tx.get("t", ("b",)))
        if fails and both[0] != both[1]:
            raise LookupError("the two do not fit")
        return both

    def write(tx: Transaction) -> None:
        tx.put("t", ("a",), "after")
        tx.put("t", ("b",), "after")

    async def view() -> None:
        seen.extend(await looker.view(look))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(view)
        await anyio.to_thread.run_sync(begun.wait)
        writer = await open_store(url(root))
        await writer.transact(write)
        written.set()
    await writer.aclose()
    await looker.aclose()

    assert seen == ["after", "after"]


async def test_who_looks_may_write_too_and_is_then_like_everybody_else(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    first, second = await open_to_look(root), await open_to_look(root)

    await first.transact(lambda tx: tx.put("t", ("a",), 1))
    read = await second.view(lambda tx: tx.get("t", ("a",)))
    await second.transact(lambda tx: tx.put("t", ("a",), 2))
    again = await first.view(lambda tx: tx.get("t", ("a",)))
    right = await first.check()
    await first.aclose()
    await second.aclose()

    assert (read, again, right) == (1, 2, [])
    assert (root / ".opencode-core").is_dir()


async def test_who_looks_and_waits_is_woken_by_every_commit(tmp_path: Path) -> None:
    root = v1_store.build(tmp_path / "storage")
    looker = await open_to_look(root)
    async with looker.changes("t") as wakes:
        writer = await open_store(url(root))
        for number in range(3):
            await writer.transact(lambda tx, n=number: tx.put("t", ("a",), n))  # type: ignore[misc]
            await anext(wakes)
            while await looker.view(lambda tx: tx.get("t", ("a",))) != number:
                await anext(wakes)
    await writer.aclose()
    await looker.aclose()
