"""A store that may not be written can be read, leaves no trace, and never shows less than there is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.storage_sqlite import children

WRITE = """
import os, sys, anyio
from plugins_builtin.storage_sqlite import open_store
async def main():
    storage = await open_store(f"sqlite://{sys.argv[1]}")
    await storage.transact(lambda tx: tx.put("t", (1,), "x" * 5_000))
    if sys.argv[2] == "held":
        print("ready", flush=True)
        sys.stdin.read()
    if sys.argv[2] == "killed":
        os._exit(0)
    await storage.aclose()
anyio.run(main)
"""

READ = """
import subprocess, sys, anyio
from plugins_builtin.storage_sqlite import open_store
from plugin_sdk.storage import StorageError
path, *mount = sys.argv[1:]
if mount:
    subprocess.run(mount, check=True)
async def main():
    try:
        storage = await open_store(f"sqlite://{path}", create=False, migrate=False)
    except StorageError as error:
        return print(f"{type(error).__name__}: {error}")
    print(await storage.view(lambda tx: [key for key, _ in tx.scan("t")]))
    print(await storage.check(), (await storage.facts()).bytes > 5_000)
    async with storage.changes("t"):
        try:
            await storage.transact(lambda tx: tx.get("t", (1,)))
        except StorageError as error:
            print(type(error).__name__)
    await storage.aclose()
anyio.run(main)
"""

READABLE = ["[(1,)]", "[] True", "StorageReadOnlyError"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A path for a store in a folder of its own, which can be removed at the end."""
    folder = tmp_path / "folder"
    folder.mkdir()
    yield folder / "store"
    folder.chmod(0o700)


def trace_of(store: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in store.parent.iterdir()}


def lock(store: Path, what: str) -> None:
    if what == "folder":
        store.parent.chmod(0o500)
    else:
        store.chmod(0o400)


def read(store: Path, *mount: object, through: Sequence[str] | None = None) -> list[str]:
    """Reads the store in a program that heeds permissions, and sees to it that nothing changed."""
    before = trace_of(store)
    bound = children.bound_by_permissions() if through is None else through
    printed = children.output(READ, store, *mount, through=bound)
    assert trace_of(store) == before
    return printed.splitlines()


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_store_that_was_closed_is_read(store: Path, what: str) -> None:
    children.output(WRITE, store, "closed")
    lock(store, what)
    assert read(store) == READABLE


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_a_killed_process_left_in_the_journal_is_read_too(store: Path, what: str) -> None:
    children.output(WRITE, store, "killed")
    assert {file.name for file in store.parent.iterdir()} == {"store", "store-wal", "store-shm"}
    lock(store, what)
    assert read(store) == READABLE


def test_empty_files_beside_the_store_do_no_harm(store: Path) -> None:
    children.output(WRITE, store, "closed")
    for suffixes in (["-wal"], ["-shm"], ["-journal"], ["-wal", "-shm"]):
        beside = [store.with_name(store.name + suffix) for suffix in suffixes]
        for file in beside:
            file.touch()
        lock(store, "folder")
        assert read(store) == READABLE
        store.parent.chmod(0o700)
        for file in beside:
            file.unlink()


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_journal_that_cannot_be_read_is_named_rather_than_passed_over(store: Path, suffix: str, what: str) -> None:
    children.output(WRITE, store, "killed")
    store.with_name("store-shm").unlink()
    store.with_name("store-wal").rename(store.with_name(f"store{suffix}"))
    lock(store, what)
    [problem] = read(store)
    assert problem.startswith("StorageReadOnlyError: ")
    assert f"'store{suffix}'" in problem
    assert "copy both files" in problem


def test_a_store_that_somebody_else_writes_to_is_read(store: Path) -> None:
    with children.held(WRITE, store, "held"):
        lock(store, "folder")
        assert children.output(READ, store, through=children.bound_by_permissions()).splitlines() == READABLE
        store.parent.chmod(0o700)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)


def test_an_older_or_newer_layout_is_still_refused(store: Path) -> None:
    children.output(WRITE, store, "closed")
    for version in (0, 9):
        with closing(sqlite3.connect(store)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        lock(store, "folder")
        [problem] = read(store)
        assert problem.startswith("StorageVersionError: ")
        store.parent.chmod(0o700)


def test_a_store_on_a_medium_that_cannot_be_written_is_read(store: Path) -> None:
    children.output(WRITE, store, "closed")
    if shutil.which("unshare") is None:
        pytest.skip("Nothing can be mounted here.")
    mounting = ["unshare", "--mount", "--map-root-user"] if os.geteuid() else ["unshare", "--mount"]
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    mount = ["sh", "-c", script, str(store.parent)]
    if subprocess.run([*mounting, *mount], capture_output=True, timeout=50, check=False).returncode:
        pytest.skip("Nothing can be mounted here.")
    assert read(store, *mount, through=mounting) == READABLE


MEANWHILE = """
import os, sys, anyio
from plugins_builtin.storage_sqlite import open_store
from plugin_sdk.storage import StorageError
async def main():
    folder = os.path.dirname(sys.argv[1])
    os.chmod(folder, 0o500)
    storage = await open_store(f"sqlite://{sys.argv[1]}", create=False, migrate=False)
    print(await storage.view(lambda tx: [key for key, _ in tx.scan("t")]))
    os.chmod(folder, 0o700)
    writer = await open_store(f"sqlite://{sys.argv[1]}")
    await writer.transact(lambda tx: tx.put("t", (2,), 2))
    if sys.argv[2] == "closed":
        await writer.aclose()
    try:
        print(await storage.view(lambda tx: [key for key, _ in tx.scan("t")]))
    except StorageError as error:
        print(f"{type(error).__name__}: {error.problem}")
    await writer.aclose()
    await storage.aclose()
anyio.run(main)
"""


@pytest.mark.parametrize("writer", ["open", "closed"])
def test_who_reads_without_a_lock_hears_that_somebody_wrote(store: Path, writer: str) -> None:
    children.output(WRITE, store, "closed")
    [first, second] = children.output(MEANWHILE, store, writer, through=children.bound_by_permissions()).splitlines()
    assert first == "[(1,)]"
    assert second.startswith("StorageUnavailableError: Another process changed the store")
