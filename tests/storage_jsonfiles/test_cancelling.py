"""A cancellation, also one of asyncio's own, ends no thread halfway and leaves nothing open."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from plugin_sdk.storage import StorageFacts, Transaction
from plugins_builtin.storage_jsonfiles import open_store, opening
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from tests.storage_jsonfiles.v1_store import url


class Gate:
    """Where a thread says that it is there, and waits to be let on."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.opened.wait(30)

    async def wait(self) -> None:
        await anyio.to_thread.run_sync(self.reached.wait)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def slow_opening(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Keep every opening waiting when it has opened its files."""
    original = opening._made_current

    def slow(ledger: Ledger, *, create: bool, migrate: bool) -> StorageFacts:
        gate.pass_through()
        return original(ledger, create=create, migrate=migrate)

    monkeypatch.setattr(opening, "_made_current", slow)
    return gate


def open_files(root: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
        if path.startswith(str(root)):
            found.append(path)
    return sorted(found)


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list open files")


@needs_proc
async def test_an_opening_that_was_cancelled_leaves_nothing_open(tmp_path: Path, slow_opening: Gate) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_store, url(tmp_path / "storage"))
        await slow_opening.wait()
        during = open_files(tmp_path)
        tasks.cancel_scope.cancel()
        slow_opening.opened.set()

    assert during
    assert open_files(tmp_path) == []
    await (await open_store(url(tmp_path / "storage"))).aclose()


@needs_proc
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("times", [1, 2])
async def test_an_opening_that_asyncio_cancelled_leaves_nothing_open(
    tmp_path: Path, slow_opening: Gate, times: int
) -> None:
    task = asyncio.create_task(open_store(url(tmp_path / "storage")))
    await slow_opening.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    slow_opening.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert open_files(tmp_path) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_closing_that_asyncio_cancelled_is_finished_before_any_closing_returns(
    tmp_path: Path, gate: Gate
) -> None:
    storage = await open_store(url(tmp_path / "storage"))

    def work(tx: Transaction) -> str:
        gate.pass_through()
        tx.put("t", ("a",), 1)
        return "written"

    writing = asyncio.ensure_future(storage.transact(work))
    await gate.wait()
    first = asyncio.create_task(storage.aclose())
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(storage.aclose())
    for _ in range(10):
        await asyncio.sleep(0)
    early = first.done() or second.done()
    gate.opened.set()
    await asyncio.wait([first, second])
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("jsonfiles")]

    assert not early
    assert threads == []
    assert await writing == "written"


async def test_a_closing_that_was_cancelled_is_finished_first(tmp_path: Path, gate: Gate) -> None:
    storage = await open_store(url(tmp_path / "storage"))
    written: list[str] = []

    def work(tx: Transaction) -> str:
        gate.pass_through()
        return "written"

    async def write() -> None:
        written.append(await storage.transact(work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await gate.wait()
        with anyio.CancelScope() as scope:
            scope.cancel()
            threading.Timer(0.05, gate.opened.set).start()
            await storage.aclose()
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("jsonfiles")] == []

    assert written == ["written"]
