"""Each failure of the disk or of a lock is a typed error, and the next operation works."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from plugin_sdk.storage import (
    StorageBusyError,
    StorageDamagedError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
    StorageUnavailableError,
    Transaction,
)
from plugins_builtin.storage_sqlite import opening
from plugins_builtin.storage_sqlite.connecting import WRITING
from plugins_builtin.storage_sqlite.faults import Faults
from tests.storage_sqlite import children
from tests.storage_sqlite.conftest import Open
from tests.storage_sqlite.works import deleting, putting

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.read()
"""


async def test_a_store_that_another_process_has_locked_is_busy_and_works_afterwards(opened: Open, path: Path) -> None:
    storage = await opened("?timeout=0.2")
    with children.held(HOLD, path):
        with pytest.raises(StorageBusyError, match=r"store\.sqlite' for more than 0\.2 seconds"):
            await storage.transact(lambda tx: tx.put("t", (1,), 1))
        assert await storage.view(lambda tx: list(tx.scan("t"))) == []
    await storage.transact(lambda tx: tx.put("t", (2,), 2))
    assert await storage.view(lambda tx: list(tx.scan("t"))) == [((2,), 2)]


async def test_a_lock_that_is_given_back_in_time_is_waited_for(opened: Open, path: Path) -> None:
    storage = await opened()
    async with anyio.create_task_group() as tasks:
        with children.held(HOLD, path):
            tasks.start_soon(storage.transact, lambda tx: tx.put("t", (1,), 1))
            await anyio.wait_all_tasks_blocked()
    assert await storage.view(lambda tx: tx.get("t", (1,))) == 1


async def test_a_caller_that_is_cancelled_while_another_process_holds_the_lock_need_not_wait(
    opened: Open, path: Path
) -> None:
    storage = await opened("?timeout=20")
    with children.held(HOLD, path):
        with anyio.move_on_after(0.2) as scope:
            await storage.transact(lambda tx: tx.put("t", (1,), 1))
        assert scope.cancelled_caught
    await storage.transact(lambda tx: tx.put("t", (2,), 2))
    assert await storage.view(lambda tx: list(tx.scan("t"))) == [((2,), 2)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a store have no more than 40 pages, by SQLite's own limit."""
    monkeypatch.setattr(opening, "WRITING", (*WRITING, "PRAGMA max_page_count = 40"))


def large(first: int, documents: int) -> Callable[[Transaction], None]:
    return putting("t", {(number,): "x" * 3_000 for number in range(first, first + documents)})


@pytest.mark.usefixtures("small")
async def test_a_full_store_says_so_writes_nothing_and_works_when_there_is_space(opened: Open) -> None:
    storage = await opened()
    await storage.transact(large(0, 10))
    with pytest.raises(StorageFullError):
        await storage.transact(large(100, 100))
    assert await storage.view(lambda tx: len(list(tx.scan("t")))) == 10
    await storage.transact(deleting("t", [(number,) for number in range(10)]))
    await storage.transact(large(0, 20))
    assert await storage.view(lambda tx: len(list(tx.scan("t")))) == 20


@pytest.mark.usefixtures("small")
async def test_one_job_that_does_not_fit_spoils_nothing_for_those_in_its_group(opened: Open) -> None:
    storage = await opened()
    refused: list[int] = []

    async def put(number: int) -> None:
        try:
            await storage.transact(large(number * 1_000, 100 if number == 5 else 1))
        except StorageFullError:
            refused.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(put, number)
    assert refused == [5]
    found = await storage.view(lambda tx: [key for key, _ in tx.scan("t")])
    assert found == [(number * 1_000,) for number in range(10) if number != 5]


@pytest.mark.usefixtures("small")
async def test_work_that_hides_a_full_store_from_itself_still_fails_and_writes_nothing(opened: Open) -> None:
    def hiding(tx: Transaction) -> None:
        large(0, 100)(tx)
        try:
            list(tx.scan("t"))
        except StorageFullError:
            tx.put("t", ("small",), 1)

    storage = await opened()
    with pytest.raises(StorageFullError):
        await storage.transact(hiding)
    assert await storage.view(lambda tx: list(tx.scan("t"))) == []
    await storage.transact(large(0, 1))


def test_a_full_disk_says_so_loses_nothing_and_the_store_works_when_there_is_space(tmp_path: Path) -> None:
    mounting = ["unshare", "--mount", "--map-root-user"] if os.geteuid() else ["unshare", "--mount"]
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or children.run("", through=[*mounting, *mount, "-h"]).returncode not in (0, 1):
        pytest.skip("No small file system can be mounted here.")
    program = """
        import os, subprocess, sys, anyio
        from plugins_builtin.storage_sqlite import open_store
        from plugin_sdk.storage import StorageFullError
        folder, *mount = sys.argv[1:]
        subprocess.run(mount, check=True)
        with open(f"{folder}/ballast", "wb") as file:
            file.write(bytes(200_000))
        async def main():
            storage = await open_store(f"sqlite://{folder}/store")
            acknowledged = 0
            try:
                while acknowledged < 1_000:
                    await storage.transact(lambda tx: tx.put("t", (acknowledged,), "x" * 3_000))
                    acknowledged += 1
            except StorageFullError:
                print("full")
            found = await storage.view(lambda tx: [key for key, _ in tx.scan("t")])
            print(found == [(number,) for number in range(acknowledged)] and acknowledged > 10)
            os.remove(f"{folder}/ballast")
            await storage.transact(lambda tx: tx.put("t", ("more",), "x" * 3_000))
            print(await storage.check())
            await storage.aclose()
            storage = await open_store(f"sqlite://{folder}/store")
            print(await storage.view(lambda tx: len(list(tx.scan("t")))) == acknowledged + 1)
            await storage.aclose()
        anyio.run(main)
        """
    done = children.run(program, tmp_path, *mount, through=mounting)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("No small file system can be mounted here.")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["full", "True", "[]", "True"]


OPEN = """
import sys, anyio
from plugins_builtin.storage_sqlite import open_store
from plugin_sdk.storage import StorageError
async def main():
    try:
        storage = await open_store(f"sqlite://{sys.argv[1]}")
        await storage.aclose()
    except StorageError as error:
        print(type(error).__name__)
anyio.run(main)
"""


@pytest.fixture
def locked_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing may be written once it is locked."""
    folder = tmp_path / "locked"
    folder.mkdir()
    yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize("what", ["folder", "file", "nothing there"])
def test_a_store_that_may_not_be_written_is_refused_and_left_as_it_was(locked_folder: Path, what: str) -> None:
    path = locked_folder / "store"
    bound = children.bound_by_permissions()
    if what != "nothing there":
        assert children.output(OPEN, path, through=bound) == ""
    before = path.read_bytes() if path.exists() else None
    (path if what == "file" else locked_folder).chmod(0o400 if what == "file" else 0o500)
    assert children.output(OPEN, path, through=bound) == "StorageReadOnlyError"
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(locked_folder.iterdir())) == (before is not None)
    locked_folder.chmod(0o700)
    if path.exists():
        path.chmod(0o600)
    assert children.output(OPEN, path, through=bound) == ""


def test_a_folder_that_becomes_read_only_while_the_store_is_open_stops_no_reader(locked_folder: Path) -> None:
    program = """
        import os, sys, anyio
        from plugins_builtin.storage_sqlite import open_store
        async def main():
            folder = sys.argv[1]
            storage = await open_store(f"sqlite://{folder}/store")
            await storage.transact(lambda tx: tx.put("t", (1,), 1))
            os.chmod(folder, 0o500)
            print(await storage.view(lambda tx: tx.get("t", (1,))))
            os.chmod(folder, 0o700)
            await storage.transact(lambda tx: tx.put("t", (2,), 2))
            print(await storage.view(lambda tx: tx.get("t", (2,))))
            await storage.aclose()
        anyio.run(main)
        """
    assert children.output(program, locked_folder, through=children.bound_by_permissions()).split() == ["1", "2"]


async def test_a_page_that_breaks_while_the_store_is_open_is_damage(opened: Open, path: Path) -> None:
    storage = await opened()
    await storage.transact(large(0, 100))
    await storage.aclose()
    with path.open("r+b") as file:
        file.seek(4_096 * 40)
        file.write(b"\xee" * 4_096 * 10)
    again = await opened()
    with pytest.raises(StorageDamagedError):
        await again.view(lambda tx: list(tx.scan("t")))
    with pytest.raises(StorageDamagedError):
        await again.transact(lambda tx: list(tx.scan("t")))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StorageFullError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StorageBusyError),
        (sqlite3.SQLITE_LOCKED, StorageBusyError),
        (sqlite3.SQLITE_CORRUPT_INDEX, StorageDamagedError),
        (sqlite3.SQLITE_NOTADB, StorageDamagedError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageReadOnlyError),
        (sqlite3.SQLITE_IOERR_WRITE, StorageUnavailableError),
        (sqlite3.SQLITE_CANTOPEN, StorageUnavailableError),
        (sqlite3.SQLITE_NOMEM, StorageError),
    ],
)
def test_every_code_of_sqlite_becomes_the_error_that_fits(path: Path, code: int, kind: type[StorageError]) -> None:
    error = sqlite3.OperationalError("something")
    error.sqlite_errorcode = code
    fault = Faults(path=path, seconds=1).of(error)
    assert type(fault) is kind
    assert str(path) in str(fault)
    assert fault.remedy


def test_the_remedy_for_damage_names_only_what_can_help(path: Path) -> None:
    remedy = Faults(path=path, seconds=1).damaged("a page is broken").remedy
    assert "restore a backup" in remedy
    assert "'.recover'" in remedy
    assert "storage copy" not in remedy  # which stops at the first damage


def test_an_error_while_there_is_no_space_left_is_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    monkeypatch.setattr("shutil.disk_usage", lambda folder: shutil._ntuple_diskusage(10, 10, 0))
    assert type(Faults(path=path, seconds=1).of(error)) is StorageFullError


async def test_a_failed_creation_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageFullError):
        await opening.open_store(f"sqlite://{path}")
    assert list(path.parent.iterdir()) == []
