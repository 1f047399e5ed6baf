"""An older file is brought up to date after a backup, by one process while the others wait, or not at all."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from plugin_sdk.storage import (
    JSON,
    Key,
    Storage,
    StorageBusyError,
    StorageFacts,
    StorageVersionError,
)
from plugins_builtin.storage_sqlite.opening import open_store
from plugins_builtin.storage_sqlite.schema import LAYOUT, Layout
from tests.storage_sqlite import children
from tests.storage_sqlite.works import putting

DOCUMENTS: dict[Key, JSON] = {(number,): f"document {number}" for number in range(500)}


def add_a_table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE extra (name TEXT)")
    connection.execute("UPDATE documents SET body = '\"migrated\"' WHERE key = (SELECT min(key) FROM documents)")


def fail_halfway(connection: sqlite3.Connection) -> None:
    add_a_table(connection)
    connection.execute("DELETE FROM documents")
    raise RuntimeError("halfway")


SECOND = Layout(steps=(*LAYOUT.steps, add_a_table))
THIRD = Layout(steps=(*SECOND.steps, lambda connection: None))
FAILING = Layout(steps=(*LAYOUT.steps, fail_halfway))


@pytest.fixture
async def old(path: Path) -> Path:
    """A store of the first layout, with something in it."""
    storage = await open_store(f"sqlite://{path}")
    await storage.transact(putting("t", DOCUMENTS))
    await storage.aclose()
    return path


async def opened(path: Path, layout: Layout = LAYOUT, *, switches: str = "", migrate: bool = True) -> Storage:
    return await open_store(f"sqlite://{path}{switches}", layout=layout, migrate=migrate)


async def documents_in(path: Path, layout: Layout = LAYOUT) -> dict[object, object]:
    storage = await opened(path, layout)
    try:
        return await storage.view(lambda tx: dict(tx.scan("t")))
    finally:
        await storage.aclose()


def damaged_copy_of(path: Path) -> Path:
    copy = Path(shutil.copy(path, path.with_name("copy")))
    with copy.open("r+b") as file:
        file.seek(4_096 * 3)
        file.write(b"\xee" * 4_096)
    return copy


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def names_beside(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


async def test_a_migration_makes_a_private_verified_backup_first_and_tells_of_it(old: Path) -> None:
    storage = await opened(old, SECOND)
    facts = await storage.facts()
    assert await storage.view(lambda tx: tx.get("t", (0,))) == "migrated"
    await storage.aclose()
    backup = old.with_name("store.sqlite.backup-v1")
    assert (facts.schema, facts.migrated_from, facts.backup) == (2, 1, str(backup))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert names_beside(old) == ["store.sqlite", "store.sqlite.backup-v1"]
    assert await documents_in(backup) == DOCUMENTS


async def test_a_store_that_is_up_to_date_is_neither_migrated_nor_backed_up(old: Path) -> None:
    await (await opened(old, SECOND)).aclose()
    storage = await opened(old, SECOND)
    facts = await storage.facts()
    await storage.aclose()
    assert (facts.migrated_from, facts.backup) == (None, None)
    assert names_beside(old) == ["store.sqlite", "store.sqlite.backup-v1"]


async def test_several_steps_run_in_their_order_with_one_backup(old: Path) -> None:
    storage = await opened(old, THIRD)
    facts = await storage.facts()
    await storage.aclose()
    assert (facts.schema, facts.migrated_from) == (3, 1)
    assert names_beside(old) == ["store.sqlite", "store.sqlite.backup-v1"]


async def test_an_earlier_backup_is_never_overwritten(old: Path) -> None:
    earlier = old.with_name("store.sqlite.backup-v1")
    earlier.write_text("precious")
    storage = await opened(old, SECOND)
    assert (await storage.facts()).backup == f"{earlier}-2"
    await storage.aclose()
    assert earlier.read_text() == "precious"


async def test_without_permission_to_migrate_an_old_store_is_refused_and_left_as_it_was(old: Path) -> None:
    before = content_of(old)
    with pytest.raises(StorageVersionError) as caught:
        await opened(old, SECOND, migrate=False)
    assert (caught.value.found, caught.value.known) == (1, 2)
    assert content_of(old) == before
    assert names_beside(old) == ["store.sqlite"]


async def test_a_migration_that_raises_leaves_the_old_layout_with_everything_in_it(old: Path) -> None:
    with pytest.raises(RuntimeError, match="halfway"):
        await opened(old, FAILING)
    assert await documents_in(old) == DOCUMENTS
    assert (await documents_in(old, SECOND))[0,] == "migrated"


async def test_a_migration_that_is_killed_leaves_the_old_layout_with_everything_in_it(old: Path) -> None:
    killed = children.run(
        """
        import os, signal, sys, anyio
        from plugins_builtin.storage_sqlite.opening import open_store
        from plugins_builtin.storage_sqlite.schema import LAYOUT, Layout
        def kill(connection):
            connection.execute("PRAGMA cache_size = 1")  # so that pages go to the file before the end
            connection.execute("UPDATE documents SET body = '0'")
            connection.execute("PRAGMA user_version = 2")
            os.kill(os.getpid(), signal.SIGKILL)
        layout = Layout(steps=(*LAYOUT.steps, kill))
        async def main():
            await open_store(f"sqlite://{sys.argv[1]}", layout=layout)
        anyio.run(main)
        """,
        old,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert old.with_name("store.sqlite-journal").exists()
    assert await documents_in(old) == DOCUMENTS
    assert (await documents_in(old, SECOND))[0,] == "migrated"


async def test_the_rest_of_a_killed_backup_is_replaced(old: Path) -> None:
    old.with_name("store.sqlite.backup-v1.part").write_text("half of it")
    await (await opened(old, SECOND)).aclose()
    assert names_beside(old) == ["store.sqlite", "store.sqlite.backup-v1"]


async def test_what_a_killed_process_left_in_the_journal_is_migrated_too(old: Path) -> None:
    children.output(
        """
        import os, sys, anyio
        from plugins_builtin.storage_sqlite import open_store
        async def main():
            storage = await open_store(f"sqlite://{sys.argv[1]}")
            await storage.transact(lambda tx: tx.put("t", (1_000,), "late"))
            os._exit(0)
        anyio.run(main)
        """,
        old,
    )
    assert (await documents_in(old, SECOND))[1_000,] == "late"


async def test_of_many_who_migrate_at_once_one_does_it_and_all_succeed(old: Path) -> None:
    found: list[StorageFacts] = []

    async def migrate(number: int) -> None:
        storage = await opened(old, SECOND)
        await storage.transact(lambda tx: tx.put("u", (number,), number))
        found.append(await storage.facts())
        await storage.aclose()

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(migrate, number)
    assert sorted(facts.migrated_from or 0 for facts in found) == [0, 0, 0, 0, 0, 1]
    assert names_beside(old) == ["store.sqlite", "store.sqlite.backup-v1"]
    storage = await opened(old, SECOND)
    assert await storage.view(lambda tx: len(list(tx.scan("u")))) == 6
    await storage.aclose()


async def test_a_store_that_another_has_open_is_not_migrated_under_it(old: Path) -> None:
    user = await opened(old)
    with pytest.raises(StorageBusyError, match=r"0\.3 seconds"):
        await opened(old, SECOND, switches="?timeout=0.3")
    await user.transact(lambda tx: tx.put("t", ("still",), "here"))
    await user.aclose()
    assert (await documents_in(old, SECOND))["still",] == "here"


async def test_nobody_opens_an_old_store_while_it_is_migrated(old: Path, tmp_path: Path) -> None:
    refusals: list[str] = []

    def look_from_outside(connection: sqlite3.Connection) -> None:
        with closing(sqlite3.connect(old, timeout=0)) as other:
            try:
                other.execute("SELECT count(*) FROM documents").fetchall()
            except sqlite3.OperationalError as error:
                refusals.append(str(error))

    await (await opened(old, Layout(steps=(*LAYOUT.steps, look_from_outside)))).aclose()
    assert refusals == ["database is locked"]
    with pytest.raises(StorageVersionError):
        await opened(old)


async def test_a_damaged_store_is_not_migrated(old: Path) -> None:
    copy = damaged_copy_of(old)
    with pytest.raises(Exception, match="damaged"):
        await opened(copy, SECOND)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert not copy.with_name("copy.backup-v1").exists()
