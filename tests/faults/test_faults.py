"""What can go wrong below the log is a typed error, and the next append works, with nothing missing or too much.

How each backend fails in detail is tested beside it; this is what a session notices.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import anyio
import pytest

from opencode_core.errors import StorageBusyError, StorageDamagedError, StorageUnavailableError
from opencode_core.model.event.base import Recorded
from opencode_core.model.rows import Draft
from plugins_builtin.storage_jsonfiles.files import BOOKS
from tests.faults.nursery import Child, Nursery
from tests.faults.servers import PostgresStore
from tests.faults.stores import opened
from tests.faults.witness import Witness
from tests.faults.work import a_word

FILES = ("sqlite", "jsonfiles")


@pytest.mark.parametrize("scheme", FILES)
def test_a_full_disk_refuses_an_append_and_takes_the_next_when_there_is_room(
    scheme: str, tmp_path: Path, children: Nursery
) -> None:
    said = _heard(children.child("fill_a_disk", f"{scheme}://{tmp_path}/store", str(tmp_path)))
    if said == [["unable"]]:
        pytest.skip("This system lets nobody but root mount a small disk.")

    assert said == [*[["refused", "StorageFullError"]] * 3, ["objections", []], ["kept", True]]


@pytest.mark.parametrize("scheme", FILES)
async def test_a_read_only_folder_refuses_an_append_and_takes_it_when_it_may_be_written(
    scheme: str, place: Path, children: Nursery
) -> None:
    url = f"{scheme}://{place}"
    async with opened(url) as sessions:
        await (await Witness.of(sessions)).append("before")

    said = _heard(children.child("write_where_one_may_not", url, str(place.parent)))

    assert said == [["refused", "StorageReadOnlyError"], ["objections", []], ["kept", 3]]


@pytest.mark.parametrize("scheme", FILES)
async def test_a_locked_file_is_waited_for_and_then_it_is_busy(scheme: str, place: Path, children: Nursery) -> None:
    async with opened(f"{scheme}://{place}?timeout=0.1") as sessions:
        witness = await Witness.of(sessions)
        await witness.append("before")
        how = ("lock_a_database", place) if scheme == "sqlite" else ("lock_a_file", place / BOOKS / "lock")

        with _held(children.child(how[0], str(how[1]))), pytest.raises(StorageBusyError):
            await witness.append("not now")

        await witness.append("after")
        assert await witness.objections() == []


async def test_a_locked_table_is_waited_for_and_then_it_is_busy(postgres_store: PostgresStore) -> None:
    url = f"{postgres_store.url}&options=-c%20statement_timeout%3D2000"
    async with opened(url) as sessions:
        witness = await Witness.of(sessions)
        await witness.append("before")

        with postgres_store.locked(), pytest.raises(StorageBusyError):
            await witness.append("not now")

        await witness.append("after")
        assert await witness.objections() == []


async def test_a_truncated_database_is_damaged_and_its_copy_goes_on(place: Path) -> None:
    url, copy = f"sqlite://{place}", place.with_name("copy")
    async with opened(url) as sessions:
        witness = await Witness.of(sessions)
        await witness.append("before")
    broken = _truncated(place, copy)

    with pytest.raises(StorageDamagedError):
        async with opened(url):
            pass

    assert _replaced(place, copy) == broken, "it was left as it is"
    async with opened(url) as sessions:
        witness = Witness(sessions, witness.session, witness.acknowledged)
        await witness.append("after")
        assert await witness.objections() == []


async def test_a_truncated_document_is_damaged_and_other_sessions_go_on(place: Path) -> None:
    async with opened(f"jsonfiles://{place}") as sessions:
        witness, other = await Witness.of(sessions), await Witness.of(sessions, "ses_other")
        head = place / "head" / f"{witness.session}.json"
        whole = head.read_bytes()
        head.write_bytes(whole[:-3])

        with pytest.raises(StorageDamagedError):
            await witness.append("not now")
        await other.append("meanwhile")

        head.write_bytes(whole)
        await witness.append("after")
        assert await witness.objections() == []
        assert await other.objections() == []


async def test_a_connection_that_is_closed_in_mid_transaction_is_told_and_replaced(
    postgres_store: PostgresStore,
) -> None:
    async with opened(postgres_store.url) as sessions:
        witness = await Witness.of(sessions)
        await witness.append("before")

        def close_it(rows: Draft, recorded: Recorded) -> None:
            assert postgres_store.close_connections()
            rows.get("head", ("somebody else",))

        with pytest.raises(StorageUnavailableError) as caught:
            await sessions.log.append(a_word(sessions, witness.session, "lost"), on_commit=close_it)

        assert not caught.value.outcome_unknown
        await witness.append("after")
        assert await witness.objections() == []


@pytest.mark.parametrize("seed", range(2))
async def test_a_storm_of_cancelled_callers_leaves_exactly_what_returned(seed: int, any_url: str) -> None:
    random, tried = Random(seed), 60

    async with opened(any_url) as sessions:
        witness = await Witness.of(sessions)

        async def one(number: int) -> None:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(_cancel_after, random.randrange(6), scope)
                    await witness.append(str(number))

        async with anyio.create_task_group() as group:
            for number in range(tried):
                group.start_soon(one, number)

        await witness.append("after")
        assert await witness.objections() == []
        assert await sessions.log.head(witness.session) == len(witness.acknowledged) - 1


async def _cancel_after(checkpoints: int, scope: anyio.CancelScope) -> None:
    for _ in range(checkpoints):
        await anyio.sleep(0.001)
    scope.cancel()


@pytest.fixture(params=["memory", *FILES, "postgresql"])
def any_url(request: pytest.FixtureRequest, place: Path) -> str:
    """The URL of a store that is not there yet, on each backend."""
    if request.param == "memory":
        return "memory:"
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_store").url)
    return f"{request.param}://{place}"


def _truncated(place: Path, copy: Path) -> bytes:
    shutil.copy(place, copy)
    os.truncate(place, place.stat().st_size - 5_000)
    return place.read_bytes()


def _replaced(place: Path, copy: Path) -> bytes:
    before = place.read_bytes()
    copy.replace(place)
    return before


def _heard(child: Child) -> list[object]:
    said = [json.loads(line) for line in child.said]
    assert child.wait() == 0, said
    return said


@contextmanager
def _held(child: Child) -> Iterator[None]:
    """Waits until a child holds a lock, and kills it at the end of the block."""
    try:
        assert json.loads(child.said.readline()) == ["held"]
        yield
    finally:
        child.kill()
        child.wait()
