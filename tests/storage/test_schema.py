"""A store says which version of the session tables it has, and an older one is brought up to date."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_core.errors import StorageDamagedError, StorageForeignError, StorageFullError, StorageVersionError
from opencode_core.ids import Ids
from opencode_core.model.json import JSON
from opencode_core.model.storage import Key
from opencode_core.ports.storage import Storage, Transaction
from opencode_core.session.store import SessionStore
from opencode_core.storage.adopting import PAGE, adopt
from opencode_core.storage.schema import FIRST_GENERATION, prepare
from plugins_builtin.storage_memory import MemoryStorage
from tests.storage.filling import Watched, a_log, a_store, everything, first_generation, put

SIGNED = [("store", ("schema",), '{"version": 1}')]


async def listed(storage: Storage) -> list[str]:
    sessions = SessionStore(log=a_log(storage), ids=Ids(milliseconds=lambda: 1), now=lambda: 1)
    found, cursor = list[str](), None
    while True:
        page = await sessions.list(project="abc", oldest_first=True, limit=200, cursor=cursor)
        found += [session.id for session in page.items]
        cursor = page.next
        if cursor is None:
            return found


async def test_an_empty_store_is_signed_once() -> None:
    async with a_store() as storage:
        watched = Watched(storage)
        assert (await prepare(watched)).found is None
        assert (await prepare(watched)).found == 1
        assert watched.transactions == 1
        assert await everything(storage) == SIGNED


async def test_an_empty_store_that_should_not_be_made_stays_empty() -> None:
    async with a_store() as storage:
        await prepare(storage, create=False)
        assert await everything(storage) == []


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonfiles"])
async def test_two_may_open_an_empty_store_at_once(kind: str, tmp_path: Path) -> None:
    async with a_store(kind, tmp_path) as storage, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(prepare, storage)
    if kind != "memory":
        async with a_store(kind, tmp_path) as storage:
            assert await everything(storage) == SIGNED


async def test_a_newer_store_is_refused_and_left_alone() -> None:
    async with a_store() as storage:
        await put(storage, {("store", ("schema",)): {"version": 2}, ("session", ("a", "b")): 1})
        before = await everything(storage)
        with pytest.raises(StorageVersionError) as caught:
            await prepare(storage)
        assert (caught.value.found, caught.value.known) == (2, 1)
        assert caught.value.remedy == "Use a newer program."
        assert await everything(storage) == before


@pytest.mark.parametrize("document", [1, {}, {"version": "1"}, {"version": True}, {"version": -1}, []])
async def test_a_version_that_is_no_number_is_damage(document: JSON) -> None:
    async with a_store() as storage:
        await put(storage, {("store", ("schema",)): document})
        with pytest.raises(StorageDamagedError, match="which version"):
            await prepare(storage)


async def test_somebody_elses_documents_are_refused_and_left_alone() -> None:
    async with a_store() as storage:
        await put(storage, {("invoice", ("1",)): {"sum": 3}})
        before = await everything(storage)
        with pytest.raises(StorageForeignError, match="another program"):
            await prepare(storage)
        assert await everything(storage) == before


@pytest.mark.parametrize("table", sorted(FIRST_GENERATION - {"session"}))
async def test_a_first_generation_store_without_sessions_is_not_foreign(table: str) -> None:
    async with a_store() as storage:
        await put(storage, {(table, ("a", "b")): {}})
        assert (await prepare(storage)).found == 0


async def test_tables_of_plugins_beside_sessions_are_not_foreign() -> None:
    async with a_store() as storage:
        await put(storage, {**first_generation(), ("acme_notes", ("1",)): {}})
        assert (await prepare(storage)).adopted == 2


@pytest.mark.behaviour("V1-27")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonfiles"])
async def test_sessions_of_the_first_generation_are_listed_and_their_documents_unchanged(
    kind: str, tmp_path: Path
) -> None:
    async with a_store(kind, tmp_path) as storage:
        await put(storage, first_generation(3))
        before = await everything(storage)
        prepared = await prepare(storage)
        assert (prepared.found, prepared.adopted, prepared.unreadable) == (0, 3, ())
        assert await listed(storage) == ["ses_old0000", "ses_old0001", "ses_old0002"]
        after = await everything(storage)
        assert set(before) <= set(after)
        assert {table for table, *_ in set(after) - set(before)} == {"session_list", "session_place", "store"}


async def test_an_older_store_that_should_not_be_migrated_is_refused_and_left_alone() -> None:
    async with a_store() as storage:
        await put(storage, first_generation())
        before = await everything(storage)
        with pytest.raises(StorageVersionError, match="storage migrate") as caught:
            await prepare(storage, migrate=False)
        assert (caught.value.found, caught.value.known) == (0, 1)
        assert await everything(storage) == before


BAD: dict[str, tuple[Key, JSON]] = {
    "no time": (("abc", "ses_bad"), {"id": "ses_bad", "projectID": "abc", "directory": "/x"}),
    "no object": (("abc", "ses_bad"), "text"),
    "another id": (("abc", "ses_bad"), first_generation(1)["session", ("abc", "ses_old0000")]),
    "another place": (("ses_bad",), first_generation(1)["session", ("abc", "ses_old0000")]),
    "a number": (("abc", 7), first_generation(1)["session", ("abc", "ses_old0000")]),
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_session_that_cannot_be_read_is_reported_and_left_alone(bad: str) -> None:
    key, document = BAD[bad]
    async with a_store() as storage:
        await put(storage, {**first_generation(2), ("session", key): document})
        prepared = await prepare(storage)
        assert (prepared.adopted, len(prepared.unreadable)) == (2, 1)
        assert await storage.view(lambda rows: rows.get("session", key)) == document
        assert (await prepare(storage)).found == 1


async def test_a_migration_that_was_interrupted_goes_on_where_it_was() -> None:
    def fails_second(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        if number == 2:
            raise StorageFullError("There is no space left.", "Make some.")
        return work

    async with a_store() as storage:
        await put(storage, first_generation(PAGE + 50))
        with pytest.raises(StorageFullError):
            await prepare(Watched(storage, fails_second))
        assert len(await listed(storage)) == PAGE
        prepared = await prepare(storage)
        assert (prepared.found, prepared.adopted) == (0, 50)
        assert len(await listed(storage)) == PAGE + 50


async def test_two_migrations_at_once_do_the_work_once() -> None:
    adopted = []

    async with a_store() as storage:
        await put(storage, first_generation(PAGE * 2 + 10))

        async def migrate() -> None:
            adopted.append((await prepare(storage)).adopted)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(migrate)
        assert sum(adopted) == PAGE * 2 + 10
        assert len(await listed(storage)) == PAGE * 2 + 10


async def test_a_migration_ends_without_a_word_when_somebody_else_finished_it() -> None:
    def finished_before(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        def also(rows: Transaction) -> Any:
            rows.put("store", ("schema",), {"version": 1})
            return work(rows)

        return also if number == 1 else work

    async with a_store() as storage:
        await put(storage, first_generation(3))
        assert (await prepare(Watched(storage, finished_before))).adopted == 0
        assert await listed(storage) == []


async def test_a_migration_does_not_set_back_the_version_that_a_newer_program_wrote_meanwhile() -> None:
    storage = MemoryStorage()

    def newer_before(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        storage._committed(lambda rows: rows.put("store", ("schema",), {"version": 9}))
        return work

    await put(storage, {("project", ("abc",)): {}})
    with pytest.raises(StorageVersionError):
        await prepare(Watched(storage, newer_before))
    assert await storage.view(lambda rows: rows.get("store", ("schema",))) == {"version": 9}


async def test_sessions_that_a_first_generation_program_added_later_are_adopted() -> None:
    async with a_store() as storage:
        await put(storage, first_generation(2))
        await prepare(storage)
        await put(storage, first_generation(3, start=2))
        adopted = await adopt(storage)
        assert adopted.sessions == 3
        assert len(await listed(storage)) == 5
        watched = Watched(storage)
        assert (await adopt(watched)).sessions == 0
        assert watched.transactions == 0


async def test_a_copy_that_was_never_finished_is_refused_with_what_to_do() -> None:
    async with a_store() as storage:
        await put(storage, {("store", ("copy",)): {"from": "sqlite:///old"}, ("store", ("schema",)): {"version": 1}})
        with pytest.raises(StorageDamagedError, match="'sqlite:///old' that was never finished") as caught:
            await prepare(storage)
        assert "storage copy" in caught.value.remedy
