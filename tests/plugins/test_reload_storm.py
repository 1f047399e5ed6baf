"""A hundred reloads under load: nobody ever sees half a generation, no call is lost, and nothing piles up."""

import gc
import sys
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from opencode_core.errors import PluginError
from opencode_core.host import Host
from opencode_core.model.location import Location
from opencode_core.model.tool import ToolCall
from opencode_core.plugins.calls import pty_environment
from opencode_core.plugins.place import Place
from opencode_core.plugins.scope import Slot
from opencode_core.plugins.slots import AGENTS, COMMANDS, CONTEXT_SOURCES, PROVIDER_ADAPTERS, SKILLS, TOOLS
from opencode_core.tools.registry import Completed, materialize
from tests.host.making import ask, clean_imports, opened, write

__all__ = ["clean_imports"]

pytestmark = pytest.mark.anyio

RELOADS = 100

PLUGIN = """
import anyio.lowlevel
from plugin_sdk import *

N = {number}


class Adapter:
    name = "acme"
    number = N

    async def stream(self, request):
        yield None


async def load():
    return N


async def execute(call):
    await anyio.lowlevel.checkpoint()
    return ToolOutput(text=str(N))


@hookimpl
def opencode_provider_adapters(scope):
    scope.on_close(lambda: None)
    return [Adapter()]


@hookimpl
def opencode_context_sources(scope):
    scope.on_close(lambda: N)
    return [ContextSource(key="acme/number", load=load, baseline=str, update=lambda before, now: str(now))]


@hookimpl
def opencode_tools():
    return {{f"tool_{{letter}}": Tool(description=str(N), execute=execute) for letter in "abc"}}


@hookimpl
def opencode_skills():
    return [Skill(name="acme", description=str(N), body="")]


@hookimpl
def opencode_agents():
    return [Agent(name="acme", description=str(N))]


@hookimpl
def opencode_commands():
    return [Command(name="acme", description=str(N), template="")]


@hookimpl
def opencode_pty_environment():
    return {{"ACME": str(N)}}


@hookimpl
def opencode_catalog(catalog):
    catalog.provider("acme", name=str(N))
    catalog.model("acme", f"model", name=str(N))
"""

BROKEN = PLUGIN + "\nraise ValueError(N)\n"


@attrs.define
class Watch:
    """What the readers saw."""

    location: Location
    views: int = 0
    mixed: list[set[str]] = attrs.field(factory=list)
    settled: Counter[str] = attrs.field(factory=Counter)
    ended: bool = False

    def look_everywhere(self, host: Host) -> None:
        for place in host.plugins.places:
            self.look(host, place)

    def look(self, host: Host, place: Place) -> None:
        """Read everything at one moment: host, Location and catalog belong to one generation."""
        numbers = numbers_of(host, place)
        self.views += 1
        if len(numbers) != 1:
            self.mixed.append(numbers)


DESCRIBED: tuple[Slot[Any], ...] = (TOOLS, SKILLS, AGENTS, COMMANDS)


def numbers_of(host: Host, place: Place) -> set[str]:
    view = place.read()
    load = next(source.load for each in view.all(CONTEXT_SOURCES) for source in each.value)
    return {
        *(str(getattr(each.value, "number", None)) for each in host.read().all(PROVIDER_ADAPTERS)),
        *(str(getattr(each.value, "number", None)) for each in view.all(PROVIDER_ADAPTERS)),
        *(each.value.description for slot in DESCRIBED for each in view.all(slot)),
        str(load.__globals__["N"]),
        pty_environment(view, place.location, place.location.directory, on_fault=no_fault)["ACME"],
        *(each.name for each in place.catalog.current.providers if each.id == "acme"),
        *(each.name for each in place.catalog.current.models),
    }


def no_fault(*told: Any) -> None:
    raise AssertionError(told)


@pytest.mark.behaviour("BX-01")
async def test_a_reload_storm_shows_whole_generations_loses_no_call_and_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", PLUGIN.format(number=0))

    async with opened(tmp_path / "work", plugins=[file]) as host, host.open_location(tmp_path) as place:
        watch = Watch(location=place.location)
        host.events.listen(lambda _event: watch.look_everywhere(host))
        before = sizes(host)
        async with anyio.create_task_group() as group:
            group.start_soon(read, host, watch)
            group.start_soon(read, host, watch)
            for _ in range(2):
                group.start_soon(call, host, watch)
            group.start_soon(edit, place, watch)
            generations = await storm(host, file)
            watch.ended = True
        assert watch.mixed == []
        assert sizes(host) == before
        assert await ask(host, "tool_a") == str(RELOADS)
        assert await are_gone(generations[:-1])
    assert watch.views > RELOADS
    assert set(watch.settled) <= {"completed", "stale"}
    assert watch.settled["completed"] > RELOADS


async def storm(host: Host, file: Path) -> list["weakref.ref[Any]"]:
    generations: list[weakref.ref[Any]] = []
    for number in range(1, RELOADS + 1):
        if number % 10 == 0:
            write(file, BROKEN.format(number=number))
            try:
                await host.plugins.reload("acme")
            except PluginError:
                await anyio.lowlevel.checkpoint()
        write(file, PLUGIN.format(number=number))
        await host.plugins.reload("acme")
        generations.append(weakref.ref(next(m for n, m in sys.modules.items() if n.startswith("opencode_plugin_"))))
        await anyio.lowlevel.checkpoint()
    return generations


async def read(host: Host, watch: Watch) -> None:
    while not watch.ended:
        watch.look_everywhere(host)
        await anyio.lowlevel.checkpoint()


async def call(host: Host, watch: Watch) -> None:
    """Call as sessions do: what is answered is what was advertised, or the call is refused as stale."""
    while not watch.ended:
        await anyio.lowlevel.checkpoint()
        offered = materialize(host.location.read)
        for definition in offered.definitions:
            settlement = await offered.settle(ToolCall(id="1", name=definition.name))
            if isinstance(settlement, Completed):
                assert settlement.output.text == definition.description
                watch.settled["completed"] += 1
            else:
                watch.settled[settlement.reason] += 1


async def edit(place: Place, watch: Watch) -> None:
    """Change the catalog beside the plugins, as other parts of a host do."""

    async def slowly(draft: Any) -> None:
        await anyio.lowlevel.checkpoint()
        draft.provider("other")

    while not watch.ended:
        registration = await place.catalog.add("zz", slowly, owner="the test")
        await place.catalog.reload()
        await registration.close()


def sizes(host: Host) -> dict[str, int]:
    """Return how much of everything there is; a reload adds to none."""
    changes = host.plugins._changes
    return {
        "modules": len([name for name in sys.modules if name.startswith("opencode_plugin_")]),
        "finders": len(sys.meta_path),
        "sources": len(changes.importer._files.sources),
        "pluggy": len(changes.relay._manager.get_plugins()),
        "contributions": sum(len(list(each.read())) for each in host.plugins.places),
        "attachments": sum(len(each.scope.attachments) for each in host.plugins.places),
        "scopes": len(host.plugins.registry._state.by_scope),
        "claims": len(host.plugins.registry._state.claims),
        "transforms": sum(len(each.catalog._entries) for each in host.plugins.places),
        "diagnostics": sum(len(status.diagnostics) for status in host.plugins.list()),
    }


async def are_gone(generations: list["weakref.ref[Any]"]) -> bool:
    for _ in range(50):
        gc.collect()
        if all(ref() is None for ref in generations):
            return True
        await anyio.sleep(0.01)
    return False
