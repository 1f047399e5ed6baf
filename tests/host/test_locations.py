"""Locations come and go while the host runs, each with what plugins contribute to it, whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from opencode_core.errors import ConfigError, ScopeClosedError
from plugin_sdk import PluginScope, Tool, hookimpl
from tests.host.making import PLUGINS, Person, Saying, a_tool, ask, opened, tool_plugin, tools, write

pytestmark = pytest.mark.anyio


async def test_a_location_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    write(tmp_path / "bad" / "opencode.json", "{")

    async with opened(tmp_path / "work") as host:
        with pytest.raises(ConfigError):
            async with host.open_location(tmp_path / "bad"):
                raise AssertionError("unreachable")
        assert host.plugins.places == (host.location,)
        assert host._scope.children == [host.location.scope]


async def test_the_same_project_may_be_open_twice_and_keeps_its_plugins_until_the_last_closes(tmp_path: Path) -> None:
    write(tmp_path / "one" / PLUGINS / "acme.py", tool_plugin("one"))

    async with opened(tmp_path / "work", ask_trust=Person()) as host:
        async with host.open_location(tmp_path / "one") as first:
            async with host.open_location(tmp_path / "one") as second:
                assert (await ask(first), await ask(second)) == ("one", "one")
            assert await ask(first) == "one"
        assert host.plugins.list() == ()


async def test_closing_and_opening_a_project_at_the_same_time_keeps_its_plugins(tmp_path: Path) -> None:
    write(tmp_path / "one" / PLUGINS / "acme.py", tool_plugin("one"))
    answers: list[str] = []

    async with opened(tmp_path / "work", ask_trust=Person()) as host:

        async def visit() -> None:
            for _ in range(5):
                async with host.open_location(tmp_path / "one") as place:
                    await anyio.lowlevel.checkpoint()
                    answers.append(await ask(place))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(visit)
        assert host.plugins.list() == ()
    assert answers == ["one"] * 15


async def test_a_cancelled_opening_leaves_the_location_closed(tmp_path: Path) -> None:
    async with opened(tmp_path / "work", plugins=[Saying("one")]) as host:
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with host.open_location(tmp_path):
                await anyio.lowlevel.checkpoint()
        assert host.plugins.places == (host.location,)
        assert host._scope.children == [host.location.scope]


async def test_the_application_registers_tools_of_its_own_above_those_of_plugins(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("plugin")]) as host:
        mine = host.location.scope.attach(host.attach("app").owner)
        mine.add_tool("answer", a_tool("application"))
        assert await ask(host) == "application"
        await mine.aclose()
        assert await ask(host) == "plugin"


async def test_options_of_a_project_reach_the_hooks_in_its_locations_only(tmp_path: Path) -> None:
    source = """
    import attrs
    from plugin_sdk import *
    from tests.host.making import a_tool

    @attrs.frozen
    class Options:
        says: str = "default"

    opencode_plugin = PluginManifest(options=Options)

    @hookimpl
    def opencode_tools(options):
        return {"answer": a_tool(options.says)}
    """
    file = write(tmp_path / "acme.py", source)
    write(tmp_path / "one" / "opencode.json", json.dumps({"plugins": {"acme": {"says": "project"}}}))

    async with (
        opened(tmp_path / "work", plugins=[file], ask_trust=Person()) as host,
        host.open_location(tmp_path / "one") as place,
    ):
        assert (await ask(host), await ask(place)) == ("default", "project")


async def test_options_of_a_project_that_do_not_fit_cost_only_its_locations(tmp_path: Path) -> None:
    write(tmp_path / "one" / "opencode.json", json.dumps({"plugins": {"saying": {"a": 1}}}))

    async with (
        opened(tmp_path / "work", plugins=[Saying("one")], ask_trust=Person()) as host,
        host.open_location(tmp_path / "one") as place,
    ):
        assert (await ask(host), await ask(place)) == ("one", "unknown")
        (diagnostic,) = host.plugins.get("saying").diagnostics
        assert "takes no options" in diagnostic.problem


@pytest.mark.behaviour("AT-07")
async def test_nothing_can_be_changed_in_a_host_that_has_closed(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("one"))

    async with opened(tmp_path / "work", plugins=[file]) as host:
        pass
    for change in (host.plugins.add(Saying("x")), host.plugins.reload("acme"), host.plugins.remove("acme")):
        with pytest.raises(ScopeClosedError):
            await change
    with pytest.raises(ScopeClosedError):
        await host.plugins.wait("never")
    assert tools(host) == []


async def test_a_waiter_hears_that_the_host_closed(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group, opened(tmp_path) as host:

        async def wait() -> None:
            with pytest.raises(ScopeClosedError):
                await host.plugins.wait("never")

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()


async def test_a_host_closes_while_a_person_is_being_asked(tmp_path: Path) -> None:
    file = write(tmp_path / PLUGINS / "acme.py", tool_plugin("one"))
    asked, answer = anyio.Event(), anyio.Event()

    async def slowly(*_: object) -> bool:
        asked.set()
        await answer.wait()
        return True

    async def reload() -> None:
        with pytest.raises(ScopeClosedError):
            await host.plugins.reload("acme")

    async with anyio.create_task_group() as group:
        async with opened(tmp_path, ask_trust=Person(), cleanup_deadline=0.05) as host:
            host._boarding.finder.ask = slowly
            write(file, tool_plugin("two"))
            group.start_soon(reload)
            await asked.wait()
        answer.set()


@pytest.mark.behaviour("AT-08")
async def test_a_cancelled_add_is_whole_or_nothing_in_every_location(tmp_path: Path) -> None:
    class Tidy:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            return {"tidy": a_tool("tidy")}

        @hookimpl
        def opencode_catalog(self, catalog: object) -> None:
            return None

    outcomes = set()
    async with opened(tmp_path / "work") as host, host.open_location(tmp_path) as place:
        for steps in range(12):
            async with anyio.create_task_group() as group:
                group.start_soon(host.plugins.add, Tidy())
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            outcome = (tools(host), tools(place), [each.state for each in host.plugins.list()])
            assert outcome in (([], [], []), (["tidy"], ["tidy"], ["active"]))
            outcomes.add(len(outcome[0]))
            if outcome[0]:
                await host.plugins.remove("tidy")
    assert outcomes == {0, 1}
