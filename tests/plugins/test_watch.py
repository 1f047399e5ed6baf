"""Edited plugins reload by themselves, whatever way an editor writes files; nothing here waits for time to pass."""

import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import watchfiles

from opencode_core.bus import Subscription
from opencode_core.host import Host
from opencode_core.model.event.plugin import PluginAdded, PluginEvent, PluginFailed, PluginReloaded, PluginRemoved
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.hot import HotReload
from opencode_core.plugins.watch import Watcher, _Roots, _roots, _touched
from tests.host.making import (
    PLUGINS,
    Person,
    ask,
    clean_imports,
    distribution,
    opened,
    site,
    tool_plugin,
    tools,
    write,
)

__all__ = ["clean_imports", "site"]

pytestmark = pytest.mark.anyio

Watched = tuple[Host, Subscription[PluginEvent]]


@asynccontextmanager
async def watching(folder: Path, **settings: object) -> AsyncIterator[Watched]:
    """Open a host that watches, with what happens to its plugins from then on, for at most some seconds."""
    async with opened(folder, watch=True, **settings) as host, host.events.subscribe(PluginEvent) as events:
        with anyio.fail_after(20):
            yield host, events


def atomically(path: Path, text: str) -> None:
    """Write as editors do: a new file, renamed over the old one."""
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text)
    os.replace(fresh, path)


async def test_an_edit_is_reloaded(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async with watching(tmp_path / "work", plugins=[file]) as (host, events):
        write(file, tool_plugin("new"))
        assert await anext(events) == PluginReloaded(plugin="acme", generation=2)
        assert await ask(host) == "new"


async def test_a_file_that_is_replaced_is_reloaded_and_again(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("0"))

    async with watching(tmp_path / "work", plugins=[file]) as (host, events):
        for number in (1, 2):
            atomically(file, tool_plugin(str(number)))
            assert isinstance(await anext(events), PluginReloaded)
            assert await ask(host) == str(number)


async def test_an_edited_part_of_a_package_is_reloaded(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from .deep.part import *\n")
    part = write(tmp_path / "acme" / "deep" / "part.py", tool_plugin("old"))

    async with watching(tmp_path / "work", plugins=[tmp_path / "acme"]) as (host, events):
        write(part, tool_plugin("new"))
        assert isinstance(await anext(events), PluginReloaded)
        assert await ask(host) == "new"


async def test_two_plugins_of_an_editable_install_are_reloaded_once_for_one_edit(tmp_path: Path, site: Path) -> None:
    write(site / "acme_seen" / "__init__.py", "")
    shared = write(site / "acme_seen" / "shared.py", "says = 'old'\n")
    for name in ("one", "two"):
        source = tool_plugin("x", tool=name, extra="from .shared import says\n").replace("text='x'", "text=says")
        write(site / "acme_seen" / f"{name}.py", source)
    distribution(site, "acme", {"one": "acme_seen.one", "two": "acme_seen.two"}, editable=site)

    async with watching(tmp_path / "work", entry_points=True) as (host, events):
        write(shared, "says = 'new'\n")
        assert [await anext(events), await anext(events)] == [
            PluginReloaded(plugin="one", generation=2),
            PluginReloaded(plugin="two", generation=2),
        ]
        assert (await ask(host, "one"), await ask(host, "two")) == ("new", "new")


async def test_an_edit_that_is_wrong_is_told_and_the_next_good_one_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async with watching(tmp_path / "work", plugins=[file]) as (host, events):
        atomically(file, "def (:\n")
        failed = await anext(events)
        assert isinstance(failed, PluginFailed)
        assert "SyntaxError" in failed.problem
        assert await ask(host) == "old"
        atomically(file, tool_plugin("new"))
        assert isinstance(await anext(events), PluginReloaded)
        assert await ask(host) == "new"


async def test_a_new_file_in_the_plugin_folder_of_a_project_asks_for_trust_and_is_added(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "one.py", tool_plugin("one", tool="one"))
    person = Person()

    async with watching(tmp_path, ask_trust=person) as (host, events):
        atomically(tmp_path / PLUGINS / "two.py", tool_plugin("two", tool="two"))
        assert await anext(events) == PluginAdded(plugin="two", generation=1)
        assert tools(host) == ["one", "two"]
    assert len(person.asked) == 2


async def test_a_plugin_that_came_later_is_watched_too(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "one.py", tool_plugin("one", tool="one"))

    async with watching(tmp_path, ask_trust=Person()) as (host, events):
        atomically(tmp_path / PLUGINS / "two.py", tool_plugin("two", tool="two"))
        assert isinstance(await anext(events), PluginAdded)
        await anyio.wait_all_tasks_blocked()
        atomically(tmp_path / PLUGINS / "two.py", tool_plugin("new", tool="two"))
        assert isinstance(await anext(events), PluginReloaded)
        assert await ask(host, "two") == "new"


async def test_a_location_that_is_opened_later_is_watched_though_nothing_was_before(tmp_path: Path) -> None:
    file = write(tmp_path / "one" / PLUGINS / "acme.py", tool_plugin("old"))

    async with (
        watching(tmp_path / "work", ask_trust=Person()) as (host, events),
        host.open_location(tmp_path / "one") as place,
    ):
        assert isinstance(await anext(events), PluginAdded)
        await anyio.wait_all_tasks_blocked()
        atomically(file, tool_plugin("new"))
        assert isinstance(await anext(events), PluginReloaded)
        assert await ask(place) == "new"


async def test_a_deleted_file_of_a_project_removes_its_plugin(tmp_path: Path) -> None:
    write(tmp_path / PLUGINS / "one.py", tool_plugin("one", tool="one"))
    two = write(tmp_path / PLUGINS / "two.py", tool_plugin("two", tool="two"))

    async with watching(tmp_path, ask_trust=Person()) as (host, events):
        two.unlink()
        assert await anext(events) == PluginRemoved(plugin="two", generation=0)
        assert tools(host) == ["one"]


async def test_an_edit_that_is_not_trusted_is_told_and_asked_about_once(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("old"))
    person = Person()

    async with watching(tmp_path, ask_trust=person) as (host, events):
        person.answer = False
        atomically(file, tool_plugin("new"))
        failed = await anext(events)
        assert isinstance(failed, PluginFailed)
        assert "opencode-core plugins trust" in failed.remedy
        assert await ask(host) == "old"
    assert len(person.asked) == 2


async def test_a_broken_configuration_does_not_end_the_watching(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("old"))
    config = write(tmp_path / "opencode.json", json.dumps({"plugin_watch": True}))

    async with watching(tmp_path, ask_trust=Person()) as (host, events):
        good = config.read_text()
        write(config, "{")
        atomically(file, tool_plugin("unseen"))
        while not host.plugins.get("acme").diagnostics:  # noqa: ASYNC110 -- a warning is no event
            await anyio.sleep(0.01)
        assert await ask(host) == "old"
        write(config, good)
        atomically(file, tool_plugin("new"))
        assert isinstance(await anext(events), PluginReloaded)
        assert await ask(host) == "new"


async def test_a_plugin_folder_that_comes_and_goes_and_comes_back_is_noticed(tmp_path: Path) -> None:
    async with watching(tmp_path / "work", ask_trust=Person()) as (host, events):
        for _ in range(2):
            write(tmp_path / "work" / PLUGINS / "one.py", tool_plugin("one", tool="one"))
            assert isinstance(await anext(events), PluginAdded)
            assert tools(host) == ["one"]
            shutil.rmtree(tmp_path / "work" / ".opencode")
            assert isinstance(await anext(events), PluginRemoved)
            assert tools(host) == []


async def test_a_plugin_folder_that_is_moved_into_place_and_away_is_noticed(tmp_path: Path) -> None:
    away, folder = tmp_path / "away", tmp_path / "work" / PLUGINS
    write(away / "one.py", tool_plugin("one", tool="one"))
    folder.parent.mkdir(parents=True)

    async with watching(tmp_path / "work", ask_trust=Person()) as (_host, events):
        for _ in range(2):
            away.rename(folder)
            assert isinstance(await anext(events), PluginAdded)
            folder.rename(away)
            assert isinstance(await anext(events), PluginRemoved)


async def test_a_fault_that_nobody_foresaw_is_kept_as_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async def fail(candidate: object) -> Candidate:
        raise OSError("disk on fire")

    async with opened(tmp_path / "work", plugins=[file]) as host:
        hot = HotReload(directory=host.plugins, boarding=host._boarding)
        monkeypatch.setattr(host.plugins, "find_again", fail)
        await hot.on_files(frozenset({file}))
        (warning,) = host.plugins.get("acme").diagnostics
        assert (warning.severity, warning.problem) == ("warning", "OSError: disk on fire.")
        assert await ask(host) == "old"


async def test_a_host_goes_on_when_the_system_watches_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))
    monkeypatch.setattr(watchfiles, "awatch", unwatchable)

    async with watching(tmp_path / "work", plugins=[file]) as (host, _events):
        await anyio.wait_all_tasks_blocked()
        (warning,) = host.plugins.notices
        assert "OS file watch limit reached." in warning.problem
        assert (await host.plugins.reload("acme")).generation == 2


async def test_what_cannot_be_watched_is_told_once_and_tried_again_when_the_paths_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = write(tmp_path / "one" / "a.py", ""), write(tmp_path / "two" / "a.py", "")
    paths, moved, faults = {one.parent}, anyio.Event(), list[str]()
    send, receive = anyio.create_memory_object_stream[frozenset[Path]](8)
    watcher = Watcher(
        paths=lambda: frozenset(paths),
        on_change=send.send,
        on_fault=lambda error: faults.append(str(error)),
        moved=lambda: moved.wait(),
    )

    with anyio.fail_after(20), send, receive:
        async with anyio.create_task_group() as group:
            with monkeypatch.context() as patch:
                patch.setattr(watchfiles, "awatch", unwatchable)
                await group.start(watcher.run)
                await anyio.wait_all_tasks_blocked()
                assert faults == ["OS file watch limit reached."]
            paths.add(two.parent)
            moved.set()
            moved = anyio.Event()
            await anyio.wait_all_tasks_blocked()
            write(two, "x = 1\n")
            assert two in await receive.receive()
            group.cancel_scope.cancel()
    assert len(faults) == 1


def unwatchable(*paths: object, **settings: object) -> AsyncIterator[set[object]]:
    """Be as the system is when it watches too many files already."""
    raise OSError("OS file watch limit reached.")


async def test_a_blocked_plugin_is_not_loaded_by_an_edit(tmp_path: Path) -> None:
    blocked = write(tmp_path / "a_blocked.py", tool_plugin("blocked", tool="blocked"))
    other = write(tmp_path / "other.py", tool_plugin("old"))

    config = {"plugin_block": ["a_blocked"]}
    async with watching(tmp_path / "work", plugins=[blocked, other], config=config) as (host, events):
        atomically(blocked, tool_plugin("blocked", tool="blocked"))
        atomically(other, tool_plugin("new"))
        assert (await anext(events)).plugin == "other"
        assert tools(host) == ["answer"]


async def test_the_setting_turns_watching_on(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async with watching(tmp_path / "work", plugins=[file], config={"plugin_watch": True}) as (_host, events):
        atomically(file, tool_plugin("new"))
        assert isinstance(await anext(events), PluginReloaded)


async def test_a_host_that_watches_closes_promptly(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    with anyio.fail_after(2):
        async with opened(tmp_path / "work", plugins=[file], watch=True):
            pass


def test_a_file_is_watched_through_its_folder_and_a_folder_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "")
    (tmp_path / "package").mkdir()

    roots = _roots([tmp_path / "a.py", tmp_path / "package", tmp_path / "package" / "c.py", tmp_path / "no" / "b.py"])
    assert roots == _Roots(deep=frozenset({tmp_path / "package"}), flat=frozenset({tmp_path}))


def test_only_python_files_below_watched_paths_matter() -> None:
    watched = [Path("/p/a.py"), Path("/p/package")]
    changed = ["/p/a.py", "/p/b.py", "/p/package/c.py", "/p/package/__pycache__/c.py", "/p/package/notes.txt"]

    assert _touched(watched, map(Path, changed)) == {Path("/p/a.py"), Path("/p/package/c.py")}
