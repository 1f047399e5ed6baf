"""A commit that the disk fails is said to be undone only when it is certain never to come back."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from plugin_sdk.storage import Key, Storage, StorageFullError, StorageUnavailableError, Transaction, decode_key
from plugins_builtin.storage_sqlite import queries
from tests.storage_sqlite import children
from tests.storage_sqlite.conftest import Open

FAILING_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int fails(void) {
    const char *flag = getenv("FAILING");
    if (flag == NULL || access(flag, F_OK) != 0) return 0;
    if (getenv("FAILING_ONCE")) unlink(flag);
    errno = EIO;
    return 1;
}
int fsync(int file) { return fails() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file); }
int fdatasync(int file) { return fails() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file); }
"""

WRITE_AND_DIE = """
import os, signal, sys, anyio
from plugins_builtin.storage_sqlite import open_store
from plugin_sdk.storage import StorageUnavailableError
async def main():
    storage = await open_store(f"sqlite://{sys.argv[1]}")
    await storage.transact(lambda tx: tx.put("t", ("before",), 1))
    open(os.environ["FAILING"], "w").close()
    try:
        await storage.transact(lambda tx: tx.put("t", ("failed",), "x" * 9_000))
    except StorageUnavailableError as error:
        print(error.outcome_unknown, flush=True)
    if len(sys.argv) > 2:
        os.remove(os.environ["FAILING"])
        await storage.transact(lambda tx: tx.put("t", ("after",), 1))
    os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""


@pytest.fixture
def failing_disk(tmp_path: Path) -> list[str]:
    """What makes a program's disk fail as long as the file that FAILING names is there."""
    compiler, library = shutil.which("cc"), tmp_path / "failing.so"
    if compiler is None:
        pytest.skip("No C compiler is installed.")
    (tmp_path / "failing.c").write_text(FAILING_DISK)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "failing.c", "-ldl"], check=True, timeout=50
    )
    return ["env", f"LD_PRELOAD={library}", f"FAILING={tmp_path / 'failing'}"]


def test_a_commit_said_to_be_undone_does_not_come_back_after_a_crash(path: Path, failing_disk: list[str]) -> None:
    done = children.run(WRITE_AND_DIE, path, through=[*failing_disk, "FAILING_ONCE=1"])
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["False"]), done.stderr
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    assert recovered(path) == [("before",)]


def test_while_the_disk_fails_nobody_is_told_that_nothing_was_written(path: Path, failing_disk: list[str]) -> None:
    done = children.run(WRITE_AND_DIE, path, through=failing_disk)
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["True"]), done.stderr


def test_the_store_works_on_when_the_disk_does(path: Path, failing_disk: list[str]) -> None:
    done = children.run(WRITE_AND_DIE, path, "repaired", through=failing_disk)
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["True"]), done.stderr
    assert recovered(path) == [("after",), ("before",)]


def recovered(path: Path) -> list[Key]:
    with closing(sqlite3.connect(path)) as connection:
        return [decode_key(key) for (key,) in connection.execute("SELECT key FROM documents ORDER BY key")]


class Failing(sqlite3.Connection):
    """A connection whose next commits fail."""

    commits = 0
    code = sqlite3.SQLITE_IOERR_FSYNC

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == queries.COMMIT and Failing.commits:
            Failing.commits -= 1
            super().execute(queries.ROLLBACK)
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode, error.sqlite_errorname = Failing.code, "SQLITE_IOERR_FSYNC"
            raise error
        return super().execute(sql, *parameters)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    """Puts such connections into the stores of a test."""

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return real(*arguments, **options, factory=Failing)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(Failing, "commits", 0)
    monkeypatch.setattr(Failing, "code", sqlite3.SQLITE_IOERR_FSYNC)
    return Failing


@pytest.mark.parametrize(("commits", "is_unknown"), [(1, False), (2, True)])
async def test_every_job_of_the_group_hears_whether_it_is_known(
    opened: Open, failing: type[Failing], commits: int, is_unknown: bool
) -> None:
    storage = await opened()
    errors: list[Exception] = []
    all_are_queued = threading.Event()

    def first(tx: Transaction) -> None:
        assert all_are_queued.wait(30)
        tx.put("t", (0,), 0)
        failing.commits = commits

    def wrong(tx: Transaction) -> None:
        raise LookupError

    async def hear(work: Any) -> None:
        try:
            await storage.transact(work)
        except (StorageUnavailableError, LookupError) as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for work in (first, lambda tx: tx.put("t", (1,), 1), wrong):
            tasks.start_soon(hear, work)
        await anyio.wait_all_tasks_blocked()
        all_are_queued.set()
    unavailable = [error for error in errors if isinstance(error, StorageUnavailableError)]
    assert len(unavailable) == 2
    assert unavailable[0] is not unavailable[1]
    assert len(errors) == 3  # who raised wrote nothing in any case, and hears only that
    for error in unavailable:
        assert error.outcome_unknown is is_unknown
        assert ("unknown" in error.problem) is is_unknown
    await storage.transact(lambda tx: tx.put("t", (2,), 2))
    assert await keys_in(storage) == [(2,)]


async def test_what_did_not_fit_is_known_not_to_be_there(opened: Open, failing: type[Failing]) -> None:
    storage = await opened()
    failing.commits, failing.code = 5, sqlite3.SQLITE_FULL
    with pytest.raises(StorageFullError, match="nothing was written"):
        await storage.transact(lambda tx: tx.put("t", (1,), 1))
    assert failing.commits == 4


async def test_a_commit_that_makes_another_void_changes_nothing(opened: Open, failing: type[Failing]) -> None:
    storage = await opened()
    await storage.transact(lambda tx: tx.put("t", (1,), 1))
    failing.commits = 1
    with pytest.raises(StorageUnavailableError):
        await storage.transact(lambda tx: tx.put("t", (2,), 2))
    assert await keys_in(storage) == [(1,)]
    assert await storage.check() == []
    await storage.aclose()
    assert await keys_in(await opened(create=False, migrate=False)) == [(1,)]


async def keys_in(storage: Storage) -> list[Key]:
    return await storage.view(lambda tx: [key for key, _ in tx.scan("t")])
