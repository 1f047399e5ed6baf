"""What a model is told when instructions change, come, go, or cannot be seen for a while."""

import os
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from plugin_sdk import UNAVAILABLE
from plugin_sdk.threads import GIVEN_UP
from plugins_builtin import instructions
from plugins_builtin.instructions.reading import Reader
from tests.context.running import Running, running
from tests.instructions.making import KEY, Instead, Person, before_opening, telling, while_reading

HANDED = {"instructions": instructions}
SUPERSEDES = "they replace all instructions from files and addresses that you were given before"


def snapshot(session: Running) -> list[str]:
    """Return the sources that the model was last told of."""
    epoch = session.crossings[-1].standing.epoch
    assert epoch is not None
    return list(epoch.snapshot)


@pytest.mark.behaviour("IC-02")
async def test_a_changed_file_is_told_with_all_others_and_supersedes_them(person: Person) -> None:
    person.write("config/AGENTS.md", "global")
    root = person.write("project/AGENTS.md", "root")
    async with running(person.project, HANDED) as session:
        first = await session.turn("begin")
        assert "root" in first.system
        root.write_text("other")
        second = await session.turn("go on")
        assert second.system == first.system
        told = second.said[-1]
        assert told[0] == "system"
        assert SUPERSEDES in told[1]
        assert told[1].endswith(
            f"Instructions from: {person.config}/AGENTS.md\nglobal\n\nInstructions from: {root}\nother"
        )
        third = await session.turn("go on")
        assert [role for role, _ in third.said].count("system") == 1


@pytest.mark.behaviour("IC-03")
async def test_a_deleted_file_is_told_as_what_remains_in_order(person: Person) -> None:
    files = [person.write(f"project/{folder}AGENTS.md", f"of '{folder}'") for folder in ("", "a/", "a/b/")]
    async with running(person.project / "a/b", HANDED) as session:
        await session.turn("begin")
        files[1].unlink()
        told = (await session.turn("go on")).said[-1][1]
        assert SUPERSEDES in told
        assert told.endswith(f"Instructions from: {files[0]}\nof ''\n\nInstructions from: {files[2]}\nof 'a/b/'")
        assert str(files[1]) not in told


@pytest.mark.behaviour("IC-04")
async def test_when_all_files_are_deleted_the_model_is_told_that_nothing_applies(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    async with running(person.project, HANDED) as session:
        await session.turn("begin")
        assert snapshot(session) == [KEY]
        root.unlink()
        told = (await session.turn("go on")).said[-1]
        assert told == (
            "system",
            "The instructions from files and addresses that you were given before no longer apply.",
        )
        assert snapshot(session) == []
        again = await session.turn("go on")
        assert [role for role, _ in again.said].count("system") == 1


async def test_a_file_that_appears_is_told_once_at_the_next_boundary(person: Person) -> None:
    async with running(person.project, HANDED) as session:
        assert (await session.turn("begin")).system == ""
        root = person.write("project/AGENTS.md", "root")
        told = (await session.turn("go on")).said[-1]
        assert told[0] == "system"
        assert told[1].endswith(f"Instructions from: {root}\nroot")
        assert [role for role, _ in (await session.turn("go on")).said].count("system") == 1


@pytest.mark.behaviour("BX-08")
async def test_instructions_beside_files_that_were_read_apply_from_the_next_boundary_on(person: Person) -> None:
    person.write("project/AGENTS.md", "root")
    nested = person.write("project/packages/one/AGENTS.md", "nested")
    read = person.write("project/packages/one/src/deep/code.py", "pass")
    async with running(person.project, HANDED) as session:
        first = await session.turn("read it", reads=[read])
        assert "nested" not in first.system
        told = (await session.turn("go on")).said[-1]
        assert told[0] == "system"
        assert told[1].endswith(f"root\n\nInstructions from: {nested}\nnested")
        quiet = await session.turn("go on")
        assert [role for role, _ in quiet.said].count("system") == 1


@pytest.mark.behaviour("BX-08")
async def test_instructions_beside_files_that_were_read_are_in_every_later_baseline(person: Person) -> None:
    nested = person.write("project/a/AGENTS.md", "nested")
    read = person.write("project/a/code.py", "pass")
    async with running(person.project, HANDED) as session:
        await session.turn("read it", reads=[read])
        await session.turn("go on")
        await session.compact()
        after = await session.turn("go on")
        assert after.system.endswith(f"Instructions from: {nested}\nnested")
        assert "system" not in after.roles


@pytest.mark.behaviour("BX-08")
async def test_a_nested_file_that_is_deleted_is_revoked(person: Person) -> None:
    nested = person.write("project/a/AGENTS.md", "nested")
    read = person.write("project/a/code.py", "pass")
    async with running(person.project, HANDED) as session:
        await session.turn("read it", reads=[read])
        await session.turn("go on")
        nested.unlink()
        assert "no longer apply" in (await session.turn("go on")).said[-1][1]


async def test_nested_files_come_sorted_after_those_of_the_directory_and_none_is_missed_on_the_way(
    person: Person,
) -> None:
    for folder in ("", "here/", "here/in/", "here/in/deep/", "b/", "b/c/", "a-b/"):
        person.write(f"project/{folder}AGENTS.md", folder)
    person.write("project/here/CLAUDE.md", "not this")
    person.write("project/a/CLAUDE.md", "a/")
    visited = [person.project / path for path in ("here/in/deep", "here", "b/c", "a-b", "a/gone/deeper", "", "b")]
    async with telling(person.project / "here") as told:
        texts = await told.texts(*visited, person.home, Path("/"))
        assert list((texts or {}).values()) == ["", "here/", "a/", "a-b/", "b/", "b/c/", "here/in/", "here/in/deep/"]
        assert told.warnings == []


@pytest.mark.behaviour("IC-06")
async def test_a_scan_that_fails_leaves_what_was_told_in_effect(person: Person) -> None:
    person.write("config/AGENTS.md", "global")
    person.write("project/a/AGENTS.md", "near")
    async with running(person.project / "a", HANDED) as session:
        await session.turn("begin")
        (person.project / "a").rename(person.home / "elsewhere")
        lost = await session.turn("go on")
        assert "system" not in lost.roles
        (person.home / "elsewhere").rename(person.project / "a")
        person.write("project/a/AGENTS.md", "changed")
        told = (await session.turn("go on")).said[-1]
        assert told[0] == "system"
        assert "changed" in told[1]


@pytest.mark.behaviour("IC-06")
async def test_a_folder_that_became_a_link_on_the_way_down_is_not_followed(person: Person) -> None:
    person.write("project/a/b/AGENTS.md", "near")
    person.write("other/b/AGENTS.md", "foreign")
    async with telling(person.project / "a/b") as told:
        assert list((await told.texts() or {}).values()) == ["near"]
        (person.project / "a").rename(person.project / "kept")
        (person.project / "a").symlink_to(person.home / "other")
        assert await told.texts() is None
        assert "stay as they were" in told.warnings[0]


@pytest.mark.behaviour("IC-07")
async def test_a_file_that_vanishes_before_it_is_read_leaves_what_was_told_in_effect(person: Person) -> None:
    root = person.write("project/AGENTS.md", "root")
    reader = before_opening(root, lambda: None)
    async with running(person.project, {"instructions": Instead(reader)}) as session:
        await session.turn("begin")
        reader.open_file = before_opening(root, root.unlink).open_file
        assert "system" not in (await session.turn("go on")).roles
        assert snapshot(session) == [KEY]
        assert "no longer apply" in (await session.turn("go on")).said[-1][1]


async def test_a_global_file_that_vanishes_is_absent_and_the_project_is_told(person: Person) -> None:
    own = person.write("config/AGENTS.md", "global")
    root = person.write("project/AGENTS.md", "root")
    async with telling(person.project, reader=before_opening(own, own.unlink)) as told:
        assert await told.texts() == {str(root): "root"}
        assert told.warnings == []


async def test_a_file_that_is_replaced_while_it_is_read_is_told_as_the_whole_old_one(person: Person) -> None:
    root = person.write("project/AGENTS.md", "old")
    fresh = person.write("project/fresh", "new and longer")
    async with telling(person.project, reader=while_reading(lambda: fresh.replace(root))) as told:
        assert await told.texts() == {str(root): "old"}
        assert await told.texts() == {str(root): "new and longer"}


async def test_a_file_that_is_written_while_it_is_read_is_read_again(person: Person) -> None:
    root = person.write("project/AGENTS.md", "old")
    async with telling(person.project, reader=while_reading(lambda: root.write_text("new and longer"))) as told:
        assert await told.texts() == {str(root): "new and longer"}


async def test_a_file_that_keeps_changing_while_it_is_read_is_unavailable_for_now(person: Person) -> None:
    root = person.write("project/AGENTS.md", "old")
    changes = [lambda: root.write_text("longer"), lambda: root.write_text("much longer")]
    async with telling(person.project, reader=while_reading(*changes)) as told:
        assert await told.value() is UNAVAILABLE
        assert "kept changing" in told.warnings[0]
        assert await told.texts() == {str(root): "much longer"}


async def test_a_file_that_grows_beyond_the_limit_while_it_is_read_is_left_out(person: Person) -> None:
    root = person.write("project/AGENTS.md", "old")
    reader = while_reading(lambda: root.write_text("x" * 2_000_000))
    async with telling(person.project, reader=reader) as told:
        assert await told.texts() == {}
        assert "longer than 1000000 bytes" in told.warnings[0]


def swap_for_link(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(target)


async def test_a_folder_that_becomes_a_link_out_of_the_project_before_its_file_is_opened_is_not_followed(
    person: Person,
) -> None:
    inner = person.write("project/in/AGENTS.md", "inside")
    secret = person.write("elsewhere/AGENTS.md", "secret")
    reader = before_opening(inner, lambda: swap_for_link(inner.parent, secret.parent))
    async with telling(person.project, reader=reader) as told:
        assert await told.texts(inner.parent) == {}
        assert told.warnings == [f"The instructions in '{inner}' are left out: it leads out of the project."]


async def test_a_configured_file_whose_folder_becomes_a_link_out_of_the_project_is_not_followed(
    person: Person,
) -> None:
    inner = person.write("project/in/rules.md", "inside")
    secret = person.write("elsewhere/rules.md", "secret")
    reader = before_opening(inner, lambda: swap_for_link(inner.parent, secret.parent))
    async with telling(person.project, reader=reader, files=["in/rules.md"]) as told:
        assert await told.texts() == {}


async def test_a_folder_that_is_a_link_only_while_its_file_is_opened_is_not_followed(person: Person) -> None:
    inner = person.write("project/in/AGENTS.md", "inside")
    secret = person.write("elsewhere/AGENTS.md", "secret")

    def open_file(path: str, flags: int) -> int:
        if path != str(inner):
            return os.open(path, flags)
        swap_for_link(inner.parent, secret.parent)
        try:
            return os.open(path, flags)
        finally:
            inner.parent.unlink()
            inner.parent.with_name("moved").rename(inner.parent)

    async with telling(person.project, reader=Reader(limit=1000, open_file=open_file)) as told:
        assert await told.texts(inner.parent) is None
        assert "kept changing while it was read" in told.warnings[0]


async def test_a_file_that_is_saved_anew_before_it_is_opened_is_told_as_it_is_now(person: Person) -> None:
    root = person.write("project/AGENTS.md", "old")
    fresh = person.write("project/fresh", "new")
    async with telling(person.project, reader=before_opening(root, lambda: fresh.replace(root))) as told:
        assert await told.texts() == {str(root): "new"}


async def test_a_disk_that_hangs_is_given_up_and_not_asked_for_ever(person: Person) -> None:
    person.write("project/AGENTS.md", "root")
    release, begun = threading.Event(), threading.Semaphore(0)

    def open_file(path: str, flags: int) -> int:
        begun.release()
        release.wait(30)
        return os.open(path, flags)

    async with telling(person.project, reader=Reader(limit=1000, open_file=open_file)) as told:
        try:
            for _ in range(GIVEN_UP):
                async with anyio.create_task_group() as group:
                    group.start_soon(told.texts)
                    await anyio.to_thread.run_sync(begun.acquire)
                    group.cancel_scope.cancel()
            with pytest.raises(TimeoutError, match="have not returned yet"):
                await told.texts()
            assert (await told.plugin.host.observe()).unavailable == (KEY,)
            assert not begun.acquire(blocking=False)
        finally:
            release.set()
