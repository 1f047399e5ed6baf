"""Plugins come, go and are reloaded in any order, and what is there is always what a simple model says."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.config import PluginSpec
from opencode_core.errors import PluginError, PluginNotFoundError
from opencode_core.host import Host
from opencode_core.plugins.loader import from_spec
from opencode_core.plugins.place import Place
from opencode_core.plugins.slots import CONTEXT_SOURCES
from plugin_sdk import hookimpl
from tests.host.making import Saying, ask, clean_imports, opened, tool_plugin, tools, write

__all__ = ["clean_imports"]

pytestmark = pytest.mark.anyio


# Waiting


@pytest.mark.behaviour("PL-01")
async def test_whoever_waits_for_a_plugin_is_woken_when_it_is_there_and_later_ones_at_once(tmp_path: Path) -> None:
    generations: list[int] = []

    async with opened(tmp_path) as host:

        async def wait() -> None:
            generations.append((await host.plugins.wait("saying")).generation)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await host.plugins.add(Saying("other"), name="other")
            await anyio.wait_all_tasks_blocked()
            assert generations == []
            await host.plugins.add(Saying("one"))
        await wait()
    assert generations == [1, 1]


@pytest.mark.behaviour("PL-02")
async def test_when_adding_fails_those_who_wait_and_those_who_wait_later_hear_why(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def opencode_storage_backends(self) -> Mapping[str, object]:
            raise ValueError("no disk")

    problems: list[str] = []

    async with opened(tmp_path) as host:

        async def wait() -> None:
            with pytest.raises(PluginError) as caught:
                await host.plugins.wait("broken")
            problems.append(f"{caught.value.hook}: {caught.value.problem}")

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PluginError, match="no disk"):
                await host.plugins.add(Broken())
        await wait()
    assert (
        problems
        == [
            "opencode_storage_backends: The hook 'opencode_storage_backends' of the plugin 'broken' raised: "
            "ValueError: no disk."
        ]
        * 2
    )


@pytest.mark.behaviour("PL-01")
async def test_whoever_waits_while_a_plugin_is_being_added_waits_until_it_is_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as host:
        release, seen = anyio.Event(), []

        async def hold(draft: object) -> None:
            await release.wait()

        class Editing(Saying):
            @hookimpl
            def opencode_catalog(self, catalog: object) -> None:
                return None

        async def wait() -> None:
            await host.plugins.wait("editing")
            seen.append(tools(host))

        async with anyio.create_task_group() as group:
            group.start_soon(partial(host.location.catalog.add, "zz", hold, owner="the test"))
            group.start_soon(host.plugins.add, Editing("one"))
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert seen == []
            assert host.plugins.list() == ()
            release.set()
    assert seen == [["answer"]]


async def test_an_unknown_name_suggests_the_right_one(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("one")]) as host:
        for change in (host.plugins.reload("syaing"), host.plugins.remove("syaing")):
            with pytest.raises(PluginNotFoundError, match="Did you mean 'saying'"):
                await change


async def test_a_plugin_that_was_removed_can_be_added_again(tmp_path: Path) -> None:
    plugin = Saying("one")

    async with opened(tmp_path, plugins=[plugin]) as host:
        await host.plugins.remove("saying")
        await host.plugins.add(plugin)
        assert await ask(host) == "one"


async def test_a_plugin_that_failed_leaves_its_name_to_the_next(tmp_path: Path) -> None:
    bad = write(tmp_path / "acme.py", "1/0\n")

    async with opened(tmp_path / "work", plugins=[bad]) as host:
        await host.plugins.add(Saying("good"), name="acme")
        assert await ask(host) == "good"
        assert [(each.name, each.state) for each in host.plugins.list()] == [("acme", "active")]


async def test_a_second_plugin_of_one_name_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("first")]) as host:
        with pytest.raises(PluginError, match="Two plugins are called 'saying'"):
            await host.plugins.add(Saying("second"))
        assert await ask(host) == "first"


async def test_many_changes_at_once_happen_one_at_a_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as host:

        async def come_and_go(number: int) -> None:
            for _ in range(3):
                await host.plugins.add(Saying("x", f"tool_{number}"), name=f"plugin-{number}")
                await anyio.lowlevel.checkpoint()
                await host.plugins.remove(f"plugin-{number}")

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(come_and_go, number)
        assert (tools(host), host.plugins.list()) == ([], ())


# The model

NAMES = ("ant", "bee", "cat")
FOLDERS = ("one", "two")

SOURCE = """
async def load():
    return None

@hookimpl
def opencode_context_sources():
    yield ContextSource(key="acme/{name}", load=load, baseline=str, update=lambda before, now: "")

@hookimpl
def opencode_catalog(catalog):
    catalog.provider("all", name=catalog.provider("all").name + "{name}{number} ")
"""


def code(name: str, number: int) -> str:
    return tool_plugin(f"{name}{number}", tool="shared", extra=SOURCE.format(name=name, number=number))


@attrs.define
class Model:
    """What should be there: a generation of each plugin, and the folders that are open."""

    plugins: dict[str, int] = attrs.field(factory=dict)
    folders: set[str] = attrs.field(factory=set)

    def expected(self) -> tuple[list[str], str, str]:
        names = sorted(self.plugins)
        answer = f"{names[-1]}{self.plugins[names[-1]]}" if names else "unknown"
        return [f"acme/{name}" for name in names], answer, "".join(f"{name}{self.plugins[name]} " for name in names)


@attrs.define
class Real:
    """A host, driven as the model is."""

    folder: Path
    host: Host
    stacks: dict[str, AsyncExitStack] = attrs.field(factory=dict)
    places: dict[str, Place] = attrs.field(factory=dict)
    number: int = 0

    async def step(self, action: str, name: str, model: Model) -> None:
        self.number += 1
        file = self.folder / f"{name}.py"
        if action in ("open", "close"):
            await self.visit(action, FOLDERS[NAMES.index(name) % 2], model)
        elif action == "add":
            write(file, code(name, self.number))
            await self.add(file, name, model)
        elif action == "remove":
            await self.attempt(self.host.plugins.remove(name), works=name in model.plugins)
            model.plugins.pop(name, None)
        else:
            await self.reload(file, name, model, is_broken=action == "break")

    async def add(self, file: Path, name: str, model: Model) -> None:
        candidate = from_spec(PluginSpec(text=str(file), base=self.folder, origin="the test"))
        await self.attempt(self.host.plugins.load(candidate), works=name not in model.plugins)
        model.plugins.setdefault(name, self.number)
        if f"{name}#2" in {entry.id for entry in self.host.plugins.entries()}:
            await self.host.plugins.remove(f"{name}#2")

    async def reload(self, file: Path, name: str, model: Model, *, is_broken: bool) -> None:
        write(file, "1/0\n" if is_broken else code(name, self.number))
        works = name in model.plugins and not is_broken
        await self.attempt(self.host.plugins.reload(name), works=works)
        if works:
            model.plugins[name] = self.number

    async def visit(self, action: str, folder: str, model: Model) -> None:
        if action == "open" and folder not in model.folders:
            stack = self.stacks[folder] = AsyncExitStack()
            self.places[folder] = await stack.enter_async_context(self.host.open_location(self.folder / folder))
            model.folders.add(folder)
        elif action == "close" and folder in model.folders:
            await self.stacks.pop(folder).aclose()
            del self.places[folder]
            model.folders.remove(folder)

    async def attempt(self, change: object, *, works: bool) -> None:
        try:
            await change  # type: ignore[misc]
        except PluginError:
            assert not works
        else:
            assert works

    async def seen(self, place: Place) -> tuple[list[str], str, str]:
        view = place.read()
        keys = [source.key for each in view.all(CONTEXT_SOURCES) for source in each.value]
        edited = "".join(each.name for each in place.catalog.current.providers)
        return keys, await ask(place, "shared"), edited


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for one example: a test's own is the same for all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        for each in FOLDERS:
            (folder / each).mkdir()
        yield folder


steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "reload", "break", "open", "close"]), st.sampled_from(NAMES)),
    max_size=12,
)


@given(steps)
@settings(max_examples=60)
def test_any_interleaving_of_changes_equals_the_model(script: list[tuple[str, str]]) -> None:
    anyio.run(run_beside_the_model, script)


async def run_beside_the_model(script: list[tuple[str, str]]) -> None:
    with scratch() as folder:
        async with opened(folder / "work", data_dir=folder / "data") as host:
            model, real = Model(), Real(folder, host)
            for action, plugin in script:
                await real.step(action, plugin, model)
                for place in (host.location, *real.places.values()):
                    assert await real.seen(place) == model.expected()
            for stack in real.stacks.values():
                await stack.aclose()


@given(st.permutations(["ant", "bee", "cat", "dog", "eel"]))
@settings(max_examples=10)
def test_the_order_does_not_depend_on_the_order_of_adding(names: list[str]) -> None:
    async def run() -> list[str]:
        with scratch() as folder:
            async with opened(folder) as host:
                for name in names:
                    await host.plugins.add(Saying(name, "shared"), name=name)
                return [*(each.name for each in host.plugins.list()), await ask(host, "shared")]

    assert anyio.run(run) == ["ant", "bee", "cat", "dog", "eel", "eel"]
