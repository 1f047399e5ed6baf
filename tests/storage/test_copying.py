"""Everything is copied from one store into another, and proved to have arrived."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import pytest

from opencode_core.errors import StorageDamagedError, StorageError, StorageVersionError
from opencode_core.model.storage import StorageFacts
from opencode_core.ports.storage import Transaction
from opencode_core.storage import pages
from opencode_core.storage.checking import check
from opencode_core.storage.copying import Progress, copy
from opencode_core.storage.schema import prepare
from plugins_builtin import storage_postgres
from tests.storage.filling import Watched, a_store, everything, fill, first_generation, put

KINDS = ("memory", "sqlite", "jsonfiles")
MARKER = ("store", ("copy",))


@pytest.mark.parametrize(("source", "target"), list(product(KINDS, KINDS)))
async def test_everything_is_copied_between_any_two_backends(source: str, target: str, tmp_path: Path) -> None:
    async with a_store(source, tmp_path, "old") as old, a_store(target, tmp_path, "new") as new:
        await fill(old, "ses_1", "ses_2", "ses_3")
        await put(old, {("acme_notes", ("z", -5)): {"b": 1, "a": [1.5, True, None, "\u20ac"]}})
        copied = await copy(old, new)
        assert await everything(new) == await everything(old)
        assert (copied.documents, copied.tables) == (
            len(await everything(old)),
            len({t for t, *_ in await everything(old)}),
        )
        await prepare(new)
        assert (await check(new)).findings == []


async def test_everything_is_copied_into_postgresql_and_out_of_it(postgres_url: str, tmp_path: Path) -> None:
    async with a_store("sqlite", tmp_path, "old") as old, a_store("memory", tmp_path, "new") as new:
        await fill(old, "ses_1", "ses_2", "ses_3")
        between = await storage_postgres.open_store(postgres_url)
        try:
            await copy(old, between)
            await prepare(between)
            assert (await check(between)).findings == []
            await copy(between, new)
            with pytest.raises(StorageError, match="onto itself"):
                await copy(between, between)
        finally:
            await between.aclose()
        assert await everything(new) == await everything(old)


async def test_an_empty_store_is_copied_too() -> None:
    async with a_store() as old, a_store() as new:
        assert (await copy(old, new)).documents == 0
        assert await everything(new) == []


async def test_more_than_one_page_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "HEAVIEST", 2_000)
    async with a_store() as old, a_store() as new:
        await put(old, {("session", ("abc", f"{number:05}")): number for number in range(pages.LARGEST * 2 + 3)})
        await put(old, {("session", ("abc", f"9{number:05}")): "x" * 900 for number in range(10)})
        watched = Watched(new)
        await copy(old, watched)
        assert await everything(new) == await everything(old)
        assert watched.transactions > 1 + 3 + 3  # by the weight of the last ones, not only by their number


async def test_a_store_of_the_first_generation_is_copied_as_it_is_and_migrated_there_alone() -> None:
    async with a_store() as old, a_store() as new:
        await put(old, first_generation(3))
        before = await everything(old)
        await copy(old, new)
        assert await everything(new) == before
        assert (await prepare(new)).adopted == 3
        assert await everything(old) == before


async def test_a_target_that_is_not_empty_is_refused_and_left_alone() -> None:
    async with a_store() as old, a_store() as new:
        await fill(old)
        await put(new, {("invoice", ("1",)): 1})
        before = await everything(new)
        with pytest.raises(StorageError, match="is not empty"):
            await copy(old, new)
        assert await everything(new) == before


async def test_a_target_that_a_copy_left_unfinished_is_begun_anew() -> None:
    async with a_store() as old, a_store() as new:
        await fill(old)
        await put(new, {MARKER: {"from": "x"}, ("session", ("old", "ses_gone")): 1})
        await put(new, {("part", (f"{number:05}",)): 1 for number in range(pages.LARGEST + 1)})
        await copy(old, new)
        assert await everything(new) == await everything(old)


async def test_a_store_is_not_copied_onto_itself(tmp_path: Path) -> None:
    async with a_store() as one:
        with pytest.raises(StorageError, match="onto itself"):
            await copy(one, one)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    async with a_store("sqlite", tmp_path) as one, a_store("sqlite", tmp_path / "link") as two:
        with pytest.raises(StorageError, match="onto itself"):
            await copy(one, two)
        assert await everything(one) == []


async def test_while_it_is_copied_the_target_says_so_and_cannot_be_opened() -> None:
    async with a_store() as old, a_store() as new:
        await fill(old)
        markers = []

        def look(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
            def also(rows: Transaction) -> Any:
                markers.append(rows.get(*MARKER))
                return work(rows)

            return also

        await copy(old, Watched(new, look), source_name="sqlite:///old")
        assert markers[0] is None
        assert markers[1:] == [{"from": "sqlite:///old"}] * (len(markers) - 1)


async def test_a_source_that_changed_meanwhile_is_noticed_and_the_target_stays_unfinished() -> None:
    async with a_store() as old, a_store() as new:
        await fill(old)

        def changes_source(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
            if number == 3:  # everything that comes later in the order was not read yet, what comes earlier was
                old._committed(lambda rows: rows.put("cursor", ("ses_1",), {"assistant": "x"}))  # type: ignore[attr-defined]
            return work

        with pytest.raises(StorageError, match="changed while it was copied") as caught:
            await copy(old, Watched(new, changes_source))
        assert "run the copy again" in caught.value.remedy
        with pytest.raises(StorageDamagedError, match="never finished"):
            await prepare(new)
        await copy(old, new)
        assert await everything(new) == await everything(old)


@pytest.mark.parametrize("spoil", ["drops", "changes", "adds"])
async def test_a_target_that_does_not_keep_what_it_is_given_is_noticed(spoil: str) -> None:
    def spoils(number: int, work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        def also(rows: Transaction) -> Any:
            done = work(rows)
            key = ("ses_1", 0)
            if rows.get("event", key) is not None:
                if spoil == "drops":
                    rows.delete("event", key)
                elif spoil == "changes":
                    rows.put("event", key, "other")
                else:
                    rows.put("zebra", key, 1)
            return done

        return also

    async with a_store() as old, a_store() as new:
        await fill(old)
        with pytest.raises(StorageDamagedError, match="not the same as its source"):
            await copy(old, Watched(new, spoils))
        with pytest.raises(StorageDamagedError, match="never finished"):
            await prepare(new)


async def test_a_source_that_cannot_be_understood_is_not_copied() -> None:
    async with a_store() as old, a_store() as new:
        await put(old, {("store", ("schema",)): {"version": 7}})
        with pytest.raises(StorageVersionError):
            await copy(old, new)
        assert await everything(new) == []


async def test_progress_counts_then_copies_then_compares_everything() -> None:
    async with a_store() as old, a_store() as new:
        await put(old, {("session", ("abc", f"{number:05}")): number for number in range(pages.LARGEST + 1)})
        told: list[Progress] = []
        await copy(old, new, report=told.append)
    total = pages.LARGEST + 1
    assert list(dict.fromkeys(each.stage for each in told)) == ["counting", "copying", "verifying"]
    assert {each.total for each in told if each.stage == "counting"} == {None}
    assert {each.total for each in told if each.stage != "counting"} == {total}
    for stage in ("counting", "copying", "verifying"):
        done = [each.done for each in told if each.stage == stage]
        assert done == sorted(done)
        assert done[-1] == total


async def test_two_stores_whose_places_are_unknown_are_not_taken_for_one() -> None:
    async with a_store() as old, a_store() as new:
        assert attrs.evolve(await old.facts(), bytes=0) == StorageFacts(
            kind="memory", place="memory:", schema=1, bytes=0
        )
        assert (await old.facts()).place == (await new.facts()).place
        await fill(old)
        await copy(old, new)


@pytest.mark.parametrize("number", [1.0, -0.0, 1e16, 1e22, 0.1, 2**60, -7])
async def test_a_number_is_the_same_however_a_store_writes_it(number: float, tmp_path: Path) -> None:
    async with a_store() as source, a_store("jsonfiles", tmp_path) as target:
        row: Any = {"data": {"cost": [number]}}
        await put(source, {("store", ("schema",)): {"version": 1}, ("event", ("ses_1", 0)): row})
        await copy(source, target)
        assert await target.view(lambda rows: rows.get("event", ("ses_1", 0))) == row
