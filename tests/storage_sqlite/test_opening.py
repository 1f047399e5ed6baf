"""A store is opened or made whole, and what cannot be opened is left exactly as it was."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from plugin_sdk.storage import (
    StorageDamagedError,
    StorageError,
    StorageForeignError,
    StorageMissingError,
    StorageUnavailableError,
    StorageUrlError,
    StorageVersionError,
)
from plugins_builtin.storage_sqlite.opening import open_store
from tests.storage_sqlite import children
from tests.storage_sqlite.works import putting


async def make(path: Path, documents: int = 1) -> None:
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(putting("t", {(n,): "x" * 2_000 for n in range(documents)}))
    await storage.aclose()


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.parametrize("switches", ["?timeout=0", "?timeout=-1", "?timeout=soon", "?timeout=nan", "?timeout=1e9"])
async def test_a_timeout_that_is_no_number_of_seconds_is_refused(path: Path, switches: str) -> None:
    with pytest.raises(StorageUrlError, match="timeout"):
        await open_store(f"sqlite://{path}{switches}")
    assert everything_in(path.parent) == {}


@pytest.mark.parametrize("url", ["sqlite::memory:", "sqlite:///:memory:", "sqlite:///:memory:?timeout=1"])
async def test_a_store_in_memory_is_refused_and_the_right_backend_named(url: str) -> None:
    with pytest.raises(StorageUrlError, match="'memory:'"):
        await open_store(url)


async def test_a_relative_path_is_where_the_program_was_when_it_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = await open_store("sqlite:below/a%20store?.sqlite".replace("?", "%3F"))
    monkeypatch.chdir("/")
    assert (await storage.facts()).place == str(tmp_path / "below" / "a store?.sqlite")
    await storage.aclose()
    assert [file.name for file in (tmp_path / "below").iterdir()] == ["a store?.sqlite"]


async def test_a_missing_store_is_not_made_unless_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(StorageMissingError):
        await open_store(f"sqlite://{tmp_path}/below/store.sqlite", create=False)
    assert everything_in(tmp_path) == {}


async def test_a_new_store_and_its_folders_are_private(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "store.sqlite"
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(lambda tx: tx.put("t", ("k",), 1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (path.parent, *path.parent.iterdir())}
    await storage.aclose()
    expected = {"two": 0o700, "store.sqlite": 0o600, "store.sqlite-wal": 0o600, "store.sqlite-shm": 0o600}
    assert modes == expected
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


async def test_many_who_open_a_missing_store_at_once_all_succeed_with_one_store(path: Path) -> None:
    async def open_and_write(number: int) -> None:
        storage = await open_store(f"sqlite://{path}")
        await storage.transact(lambda tx: tx.put("t", (number,), number))
        await storage.aclose()

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(open_and_write, number)
    storage = await open_store(f"sqlite://{path}", create=False)
    found = await storage.view(lambda tx: [key for key, _ in tx.scan("t")])
    await storage.aclose()
    assert found == [(number,) for number in range(12)]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_store_is_made_also_where_there_are_no_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(_from: Path, _to: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    await make(path)
    await make(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert mode_of(path) == 0o600


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def a_text(path: Path) -> None:
    path.write_text("Dear diary, this is longer than the header of a database. " * 3)


def a_short_text(path: Path) -> None:
    path.write_text("SQL")


def an_empty_file(path: Path) -> None:
    path.touch()


def a_folder(path: Path) -> None:
    path.mkdir()


def somebody_elses_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE documents (collection, key, body)")
        connection.execute("PRAGMA user_version = 1")


def somebody_elses_database_in_wal_mode(path: Path) -> None:
    somebody_elses_database(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA application_id = 77")


@pytest.mark.parametrize("migrate", [True, False])
@pytest.mark.parametrize(
    "make_it",
    [a_text, a_short_text, a_folder, an_empty_file, somebody_elses_database, somebody_elses_database_in_wal_mode],
)
async def test_something_else_is_refused_and_left_as_it_was(
    path: Path, make_it: Callable[[Path], None], migrate: bool
) -> None:
    make_it(path)
    before = everything_in(path.parent)
    with pytest.raises(StorageForeignError, match=r"is no SQLite store but an? .*; it was left as it is\."):
        await open_store(f"sqlite://{path}", migrate=migrate)
    assert everything_in(path.parent) == before


async def test_a_newer_store_is_refused_and_left_as_it_was(path: Path) -> None:
    await make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    before = everything_in(path.parent)
    assert list(before) == [path.name]
    with pytest.raises(StorageVersionError) as caught:
        await open_store(f"sqlite://{path}")
    assert (caught.value.found, caught.value.known) == (9, 1)
    assert everything_in(path.parent) == before


async def test_a_newer_store_is_refused_also_when_only_its_journal_says_so(path: Path) -> None:
    await make(path)
    children.output(
        """
        import os, sqlite3, sys
        connection = sqlite3.connect(sys.argv[1])
        connection.execute("PRAGMA user_version = 9")
        os._exit(0)
        """,
        path,
    )
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    with pytest.raises(StorageVersionError):
        await open_store(f"sqlite://{path}")


@pytest.mark.parametrize("size", [60, 100, 4_096, 5_000, 30_000])
async def test_a_truncated_store_is_damaged_and_left_as_it_was(path: Path, size: int) -> None:
    await make(path, documents=50)
    with path.open("r+b") as file:
        file.truncate(size)
    before = everything_in(path.parent)
    with pytest.raises(StorageDamagedError, match="end is missing"):
        await open_store(f"sqlite://{path}")
    assert everything_in(path.parent) == before


async def test_a_store_whose_inside_is_overwritten_is_damaged(path: Path) -> None:
    await make(path, documents=50)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xee" * 4_000)
    with pytest.raises(StorageDamagedError):
        await open_store(f"sqlite://{path}")


async def test_a_store_without_its_table_is_damaged(path: Path) -> None:
    await make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE documents")
    with pytest.raises(StorageDamagedError, match="table"):
        await open_store(f"sqlite://{path}")


async def test_a_path_below_a_file_cannot_be_reached(tmp_path: Path) -> None:
    a_text(tmp_path / "file")
    with pytest.raises(StorageUnavailableError):
        await open_store(f"sqlite://{tmp_path}/file/store.sqlite")


WRITE = """
import sys, anyio
from plugins_builtin.storage_sqlite import open_store
async def main():
    storage = await open_store(f"sqlite://{sys.argv[1]}")
    await storage.transact(lambda tx: tx.put("t", ("other process",), 1))
    await storage.aclose()
anyio.run(main)
"""


async def test_a_second_store_in_the_process_takes_no_lock_from_the_first(path: Path) -> None:
    first = await open_store(f"sqlite://{path}")
    await first.transact(putting("t", {(1,): 1}))
    await (await open_store(f"sqlite://{path}")).aclose()
    children.output(WRITE, path)  # it would take itself for the last one, and remove the journal of the first
    assert path.with_name(path.name + "-wal").exists()
    await first.transact(putting("t", {(2,): 2}))
    found = await first.view(lambda tx: [key for key, _ in tx.scan("t")])
    await first.aclose()
    assert found == [(1,), (2,), ("other process",)]


async def test_a_file_is_looked_at_again_once_every_store_of_it_is_closed(path: Path) -> None:
    first, second = await open_store(f"sqlite://{path}"), await open_store(f"sqlite://{path}")
    await first.aclose()
    await second.aclose()
    with path.open("r+b") as file:
        file.write(b"x")
    with pytest.raises(StorageForeignError):
        await open_store(f"sqlite://{path}")


async def test_after_a_failed_opening_nothing_is_left_open(path: Path) -> None:
    await make(path)
    for _ in range(3):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 9")
        with pytest.raises(StorageError):
            await open_store(f"sqlite://{path}")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 1")
            assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)  # nobody else is here
        await make(path)


def test_dataset_is_imported_only_when_a_store_opens(tmp_path: Path) -> None:
    printed = children.output(
        """
        import sys, anyio
        import plugins_builtin.storage_sqlite as plugin
        from plugin_sdk.storage import StorageError
        heavy = {"dataset", "sqlalchemy", "alembic"}
        async def main():
            plugin.opencode_storage_backends()
            print(sorted(heavy & set(sys.modules)))
            try:
                await plugin.open_store(f"sqlite://{sys.argv[1]}/none", create=False)
            except StorageError:
                print(sorted(heavy & set(sys.modules)))
            await (await plugin.open_store(f"sqlite://{sys.argv[1]}/one")).aclose()
            print(sorted(heavy & set(sys.modules)))
        anyio.run(main)
        """,
        tmp_path,
    )
    assert printed.splitlines() == ["[]", "[]", "['alembic', 'dataset', 'sqlalchemy']"]
