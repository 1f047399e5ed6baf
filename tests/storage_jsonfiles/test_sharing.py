"""Processes and threads share a store: many read or one writes, nobody waits for ever, and each hears of the other."""

import subprocess
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from plugin_sdk.storage import ReadTransaction, StorageBusyError, Transaction
from plugins_builtin.storage_jsonfiles import open_store
from tests.storage_jsonfiles.children import child, heard, kill, tell
from tests.storage_jsonfiles.v1_store import url

# Holds the store, in a view or a transaction, until told to let go.
HOLDS = """
def work(tx):
    say("holding")
    hear()
    return 1

async def main():
    storage = await open_store(URL)
    await getattr(storage, HOW)(work)
    say("let go")
    hear()
    await storage.aclose()

anyio.run(main)
"""

# Writes each line it hears.
WRITES = """
async def main():
    storage = await open_store(URL)
    say("open")
    while line := hear():
        await storage.transact(lambda tx: tx.put("t", (line,), 1))
        say("written")
    await storage.aclose()

anyio.run(main)
"""

COUNTS = """
def work(tx):
    tx.put("t", ("n",), (tx.get("t", ("n",)) or 0) + 1)

async def main():
    storage = await open_store(URL)
    for _ in range(40):
        await storage.transact(work)
    await storage.aclose()
    say("done")

anyio.run(main)
"""


async def hear(process: "subprocess.Popen[str]") -> str:
    return await anyio.to_thread.run_sync(heard, process)


async def test_readers_of_two_processes_read_at_once_and_a_writer_waits(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage", "?timeout=0.05"))
    await storage.transact(lambda tx: tx.put("t", ("a",), 1))
    with child('HOW = "view"\n' + HOLDS, url(tmp_path / "storage")) as process:
        assert await hear(process) == "holding"
        assert await storage.view(lambda tx: tx.get("t", ("a",))) == 1
        with pytest.raises(StorageBusyError):
            await storage.transact(lambda tx: tx.put("t", ("a",), 2))
        tell(process, "let go")
        assert await hear(process) == "let go"
        await storage.transact(lambda tx: tx.put("t", ("a",), 3))
        assert await storage.view(lambda tx: tx.get("t", ("a",))) == 3
    await storage.aclose()


async def test_everybody_waits_for_a_writer_but_not_for_ever(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage", "?timeout=0.05"))
    with child('HOW = "transact"\n' + HOLDS, url(tmp_path / "storage")) as process:
        assert await hear(process) == "holding"
        with pytest.raises(StorageBusyError):
            await storage.view(lambda tx: tx.get("t", ("a",)))
        with pytest.raises(StorageBusyError):
            await storage.transact(lambda tx: tx.put("t", ("a",), 2))
        kill(process)
        await storage.transact(lambda tx: tx.put("t", ("a",), 3))
    await storage.aclose()


async def test_a_waiting_transaction_can_be_cancelled(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    with child('HOW = "transact"\n' + HOLDS, url(tmp_path / "storage")) as process:
        assert await hear(process) == "holding"
        for use in (storage.transact, storage.view):
            with anyio.move_on_after(0.02) as scope:
                await use(lambda tx: tx.get("t", ("a",)))
            assert scope.cancelled_caught
        kill(process)
    await storage.aclose()


async def test_a_writer_gets_its_turn_against_a_stream_of_readers(tmp_path: Path) -> None:
    """Each reader goes on until another has begun, so the store is never free unless newcomers are held back."""
    writer = await open_store(url(tmp_path / "storage", "?timeout=5"))
    readers = await open_store(url(tmp_path / "storage"))
    written, begun, count = threading.Event(), threading.Condition(), 0

    def work(tx: ReadTransaction) -> None:
        nonlocal count
        with begun:
            count += 1
            mine = count
            begun.notify_all()
            begun.wait_for(lambda: count > mine, timeout=0.3)

    def wait_until_they_read() -> None:
        with begun:
            begun.wait_for(lambda: count > 3)

    async def read() -> None:
        while not written.is_set():
            await readers.view(work)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(read)
        tasks.start_soon(read)
        await anyio.to_thread.run_sync(wait_until_they_read)
        await writer.transact(lambda tx: tx.put("t", ("a",), 1))
        written.set()
    await writer.aclose()
    await readers.aclose()


async def test_no_count_is_lost_between_processes(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))

    def count(tx: Transaction) -> None:
        number = tx.get("t", ("n",))
        assert number is None or isinstance(number, int)
        tx.put("t", ("n",), (number or 0) + 1)

    with child(COUNTS, url(tmp_path / "storage")) as one, child(COUNTS, url(tmp_path / "storage")) as two:
        for _ in range(40):
            await storage.transact(count)
        assert [await hear(one), await hear(two)] == ["done", "done"]
    total = await storage.view(lambda tx: tx.get("t", ("n",)))
    await storage.aclose()

    assert total == 120


async def test_a_commit_of_another_process_wakes_who_waits(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    with child(WRITES, url(tmp_path / "storage")) as process:
        assert await hear(process) == "open"
        async with storage.changes("t", ("a",)) as wakes:
            for line in ("a", "b", "c"):
                tell(process, line)
                assert await hear(process) == "written"
                await anext(wakes)
                assert await storage.view(lambda tx, name=line: tx.get("t", (name,))) == 1  # type: ignore[misc]
    await storage.aclose()


async def test_a_commit_of_this_process_wakes_only_who_waits_for_it(tmp_path: Path) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    async with storage.changes("t", ("a",)) as mine, storage.changes("t", ("b",)) as other:
        for number in range(3):
            await storage.transact(lambda tx, n=number: tx.put("t", ("a", n), 1))  # type: ignore[misc]
            await anext(mine)
        await anyio.sleep(0.25)  # more than the longest pause of the thread that looks
        with anyio.move_on_after(0.05) as scope:
            await anext(other)
    await storage.aclose()

    assert scope.cancelled_caught


async def test_a_commit_whose_process_died_wakes_too(tmp_path: Path) -> None:
    dies = """
def stop(*arguments):
    say("dying")
    signal.pause()

async def main():
    storage = await open_store(URL)
    Files.write = stop
    hear()
    await storage.transact(lambda tx: tx.put("t", ("a",), 1))

anyio.run(main)
"""
    storage = await open_store(url(tmp_path / "storage"))
    with child(dies, url(tmp_path / "storage")) as process:
        async with storage.changes("t") as wakes:
            tell(process, "go")
            assert await hear(process) == "dying"
            kill(process)
            await anext(wakes)
            assert await storage.view(lambda tx: tx.get("t", ("a",))) == 1
    await storage.aclose()


async def test_there_are_threads_only_while_they_are_needed(tmp_path: Path) -> None:
    def ours() -> list[str]:
        return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("jsonfiles"))

    storage = await open_store(url(tmp_path / "storage"))
    assert ours() == []
    async with storage.changes("t"), storage.changes("u"):
        assert ours() == ["jsonfiles watch"]
    await storage.transact(lambda tx: tx.put("t", ("a",), 1))
    for _ in range(3):
        await storage.view(lambda tx: tx.get("t", ("a",)))
    assert [name for name in ours() if "watch" not in name] == ["jsonfiles reader", "jsonfiles writer"]
    await storage.aclose()
    assert ours() == []


async def test_transactions_that_wait_together_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plugins_builtin.storage_jsonfiles import journal
    from plugins_builtin.storage_jsonfiles.durable import sync_content

    synced: list[int] = []

    def counting(descriptor: int) -> None:
        synced.append(descriptor)
        sync_content(descriptor)

    storage = await open_store(url(tmp_path / "storage"))
    monkeypatch.setattr(journal, "sync_content", counting)
    gate, begun = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        begun.set()
        assert gate.wait(30)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.transact, hold)
        await anyio.to_thread.run_sync(begun.wait)
        for number in range(50):
            tasks.start_soon(storage.transact, lambda tx, n=number: tx.put("t", (n,), n))
        await anyio.wait_all_tasks_blocked()
        gate.set()
    count = await storage.view(lambda tx: len(list(tx.scan("t"))))
    await storage.aclose()

    assert count == 50
    assert len(synced) == 1


async def test_a_page_reads_no_file_outside_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plugins_builtin.storage_jsonfiles.files import Files

    storage = await open_store(url(tmp_path / "storage"))

    def write(tx: Transaction) -> None:
        for number in range(30):
            tx.put("t", ("a", number), number)

    await storage.transact(write)
    original = Files.read
    read: list[str] = []

    def noting(files: Files, names: tuple[str, ...]) -> bytes | None:
        read.append(names[-1])
        return original(files, names)

    monkeypatch.setattr(Files, "read", noting)
    page = await storage.view(lambda tx: list(tx.scan("t", ("a",), after=("a", 9), limit=3)))
    last = await storage.view(lambda tx: list(tx.scan("t", after=("a", 9), limit=2, reverse=True)))
    await storage.aclose()

    assert [document for _, document in page] == [10, 11, 12]
    assert [document for _, document in last] == [8, 7]
    assert read == ["@10.json", "@11.json", "@12.json", "@8.json", "@7.json"]
