"""A reload swaps a plugin's code in one step; if anything is wrong, the old generation goes on answering."""

import gc
import importlib
import sys
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from opencode_core.errors import PluginContractError, PluginError, PluginReloadError
from opencode_core.host import Host
from opencode_core.model.catalog import CatalogDraft
from opencode_core.model.event.plugin import PluginFailed, PluginReloaded
from opencode_core.model.tool import ToolCall
from opencode_core.plugins.slots import CONTEXT_SOURCES, TOOLS
from opencode_core.tools.registry import Completed, Refused, materialize
from tests.host.making import (
    HEAD,
    Saying,
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

SOURCE = """
async def load():
    return "x"

@hookimpl
def opencode_context_sources():
    return [ContextSource(key="acme/{key}", load=load, baseline=str, update=lambda before, now: now)]
"""


# New code is seen


@pytest.mark.behaviour("ST-02")
async def test_a_changed_file_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async with opened(tmp_path / "work", plugins=[file]) as host, host.events.subscribe(PluginReloaded) as reloaded:
        write(file, tool_plugin("new"))
        status = await host.plugins.reload("acme")
        assert (status.generation, status.state) == (2, "active")
        assert await ask(host) == "new"
        assert await anext(reloaded) == PluginReloaded(plugin="acme", generation=2)


async def test_a_changed_part_of_a_package_is_seen(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "__init__.py", "from .inner.part import *\n")
    part = write(tmp_path / "acme" / "inner" / "part.py", tool_plugin("old"))

    async with opened(tmp_path / "work", plugins=[tmp_path / "acme"]) as host:
        write(part, tool_plugin("new"))
        await host.plugins.reload("acme")
        assert await ask(host) == "new"


async def test_an_editable_install_is_seen_in_every_location(tmp_path: Path, site: Path) -> None:
    write(site / "acme_edit" / "__init__.py", "")
    part = write(site / "acme_edit" / "plugin.py", tool_plugin("old"))
    distribution(site, "acme", {"acme": "acme_edit.plugin"}, editable=site)

    async with opened(tmp_path / "work", entry_points=True) as host, host.open_location(tmp_path) as place:
        write(part, tool_plugin("new"))
        await host.plugins.reload("acme")
        assert (await ask(host), await ask(place)) == ("new", "new")


async def test_two_plugins_that_share_a_package_are_reloaded_together(tmp_path: Path, site: Path) -> None:
    write(site / "acme_two" / "__init__.py", "")
    shared = write(site / "acme_two" / "shared.py", "says = 'old'\n")
    for name in ("one", "two"):
        source = tool_plugin("x", tool=name, extra="from .shared import says\n").replace("text='x'", "text=says")
        write(site / "acme_two" / f"{name}.py", source)
    distribution(site, "acme", {"one": "acme_two.one", "two": "acme_two.two"})

    async with opened(tmp_path / "work", entry_points=True) as host:
        write(shared, "says = 'new'\n")
        await host.plugins.reload("one")
        assert (await ask(host, "one"), await ask(host, "two")) == ("new", "new")
        assert [host.plugins.get(name).generation for name in ("one", "two")] == [2, 2]


async def test_of_two_that_share_a_package_the_one_at_fault_is_named_and_both_stay(tmp_path: Path, site: Path) -> None:
    write(site / "acme_fault" / "__init__.py", "")
    for name in ("one", "two"):
        write(site / "acme_fault" / f"{name}.py", tool_plugin("old", tool=name))
    distribution(site, "acme", {"one": "acme_fault.one", "two": "acme_fault.two"})

    async with opened(tmp_path / "work", entry_points=True) as host:
        write(site / "acme_fault" / "one.py", tool_plugin("new", tool="one"))
        write(site / "acme_fault" / "two.py", "1/0\n")
        with pytest.raises(PluginError, match="'two' could not be imported"):
            await host.plugins.reload("one")
        assert (await ask(host, "one"), await ask(host, "two")) == ("old", "old")
        assert [len(host.plugins.get(name).diagnostics) for name in ("one", "two")] == [0, 1]


async def test_a_plugin_that_failed_at_first_is_there_after_a_good_edit(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", "1/0\n")

    async with opened(tmp_path / "work", plugins=[file]) as host:
        write(file, tool_plugin("good"))
        assert (await host.plugins.reload("acme")).diagnostics == ()
        assert await ask(host) == "good"


@pytest.mark.parametrize("code", ["", "# soon\n", "def opencode_tools():\n    return {}\n"])
async def test_a_file_that_was_emptied_keeps_the_old_generation(tmp_path: Path, code: str) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("old"))

    async with opened(tmp_path / "work", plugins=[file]) as host:
        write(file, code)
        with pytest.raises(PluginContractError, match="The plugin 'acme' implements no hook"):
            await host.plugins.reload("acme")
        status = host.plugins.get("acme")
        assert (status.state, status.generation, await ask(host)) == ("active", 1, "old")
        write(file, tool_plugin("new"))
        assert (await host.plugins.reload("acme")).generation == 2
        assert await ask(host) == "new"


async def test_an_object_of_the_host_cannot_be_reloaded(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Saying("one")]) as host:
        with pytest.raises(PluginReloadError, match="handed over by the host"):
            await host.plugins.reload("saying")
        assert await ask(host) == "one"


async def test_an_uninstalled_plugin_goes_on_until_it_is_removed(tmp_path: Path, site: Path) -> None:
    write(site / "acme_gone.py", tool_plugin("old"))
    distribution(site, "acme", {"acme": "acme_gone"})

    async with opened(tmp_path / "work", entry_points=True) as host:
        (site / "acme-1.0.dist-info" / "entry_points.txt").unlink()
        with pytest.raises(PluginError, match="no longer found"):
            await host.plugins.reload("acme")
        assert await ask(host) == "old"
        await host.plugins.remove("acme")
        assert await ask(host) == "unknown"


# Bad code leaves the old generation answering

OPTIONS = """
import attrs

@attrs.frozen
class Options:
    says: {kind} = {default}

opencode_plugin = PluginManifest(options=Options)
"""

FAULTS = {
    "syntax error": ("x = 1\ndef (:\n", "SyntaxError", 2),
    "import error": ("\nimport acme_not_there\n", "No module named 'acme_not_there'", 2),
    "raises": ("\n\n1/0\n", "ZeroDivisionError", 3),
    "leaves": ("raise SystemExit\n", "SystemExit", 1),
    "duplicate key": (tool_plugin("new", extra=SOURCE.format(key="taken")), "by both 'other' and 'acme'", 6),
    "bad return type": (HEAD + "\n@hookimpl\ndef opencode_tools():\n    return 5\n", "returned a 'int'", 3),
    "unknown hook": (HEAD + "\n@hookimpl\ndef opencode_toolz():\n    pass\n", "'opencode_toolz'", 3),
    "hook raises": (HEAD + "@hookimpl\ndef opencode_tools():\n    raise KeyError(1)\n", "KeyError", 4),
    "failed catalog edit": (
        HEAD + "@hookimpl\ndef opencode_catalog(catalog):\n    catalog.model('no', 'm')\n",
        "'no', which is not in the catalog",
        4,
    ),
    "wrong options": (tool_plugin("new", extra=OPTIONS.format(kind="int", default=1)), "'says' that should be", None),
}


def good_code(fault: str) -> tuple[str, dict[str, Any]]:
    """Return code that works, with its settings, in whose place the bad code comes."""
    if fault == "wrong options":
        return tool_plugin("old", extra=OPTIONS.format(kind="str", default="'x'")), {"plugins": {"acme": {"says": "x"}}}
    return tool_plugin("old"), {}


@pytest.mark.parametrize("fault", FAULTS)
async def test_bad_code_leaves_the_old_generation_answering(tmp_path: Path, fault: str) -> None:
    bad, problem, line = FAULTS[fault]
    good, config = good_code(fault)
    file = write(tmp_path / "acme.py", good)
    other = write(tmp_path / "other.py", HEAD + SOURCE.format(key="taken"))

    async with opened(tmp_path / "work", plugins=[file, other], config=config) as host:
        await check_a_failed_reload(host, file, bad, problem, line)
        write(file, good.replace("old", "new"))
        await host.plugins.reload("acme")
        assert await ask(host) == "new"
        assert host.plugins.get("acme").diagnostics == ()


async def check_a_failed_reload(host: Host, file: Path, bad: str, problem: str, line: int | None) -> None:
    before = dict(sys.modules), sizes(host), list(sys.meta_path)
    write(file, bad)
    async with host.events.subscribe(PluginFailed) as failed:
        with pytest.raises(PluginError, match=problem):
            await host.plugins.reload("acme")
        event = await anext(failed)
    assert await ask(host) == "old"
    assert (dict(sys.modules), sizes(host), list(sys.meta_path)) == before
    status = host.plugins.get("acme")
    assert (status.state, status.generation, len(status.diagnostics)) == ("active", 1, 1)
    assert (event.generation, event.problem) == (1, status.diagnostics[0].problem)
    if line is not None:
        assert (status.diagnostics[0].file, status.diagnostics[0].line) == (str(file), line)


def sizes(host: Host) -> tuple[int, int, int, int]:
    """Return how much the host holds, to see that nothing piles up."""
    changes = host.plugins._changes
    return (
        len(list(host.location.read())),
        len(changes.relay._manager.get_plugins()),
        sum(len(scope.attachments) for scope in (host._scope, host.location.scope)),
        len(changes.importer._files.sources),
    )


async def test_where_the_old_generation_was_kept_out_the_new_one_may_be_too(tmp_path: Path) -> None:
    picky = """
    from plugin_sdk import *
    from tests.host.making import a_tool

    @hookimpl
    def opencode_tools(scope):
        if not scope.name.endswith("work"):
            raise ValueError("not here")
        return {"answer": a_tool("old")}
    """
    file = write(tmp_path / "acme.py", picky)

    async with opened(tmp_path / "work", plugins=[file]) as host, host.open_location(tmp_path) as place:
        write(file, picky.replace("old", "new"))
        await host.plugins.reload("acme")
        assert (await ask(host), await ask(place)) == ("new", "unknown")
        write(file, tool_plugin("everywhere"))
        await host.plugins.reload("acme")
        assert (await ask(host), await ask(place)) == ("everywhere", "everywhere")
        assert host.plugins.get("acme").diagnostics == ()


# Order and identity


async def test_a_reloaded_plugin_keeps_its_place_in_every_order(tmp_path: Path) -> None:
    plugins = []
    for name in ("ant", "bee", "cat"):
        extra = SOURCE.format(key=name) + CATALOG.format(name=name)
        plugins.append(write(tmp_path / f"{name}.py", tool_plugin(name, extra=extra)))

    async with opened(tmp_path / "work", plugins=plugins) as host:
        orders = [order(host)]
        for name in ("ant", "cat", "bee"):
            await host.plugins.reload(name)
            orders.append(order(host))
    assert orders == [orders[0]] * 4
    assert orders[0][:2] == (["acme/ant", "acme/bee", "acme/cat"], "cat")


CATALOG = """
@hookimpl
def opencode_catalog(catalog):
    before = catalog.provider("all").name
    catalog.provider("all", name=before + "{name} ")
"""


def order(host: Host) -> tuple[list[str], str, str, list[str]]:
    view = host.location.read()
    keys = [source.key for each in view.all(CONTEXT_SOURCES) for source in each.value]
    answering = view.find(TOOLS, "answer")
    assert answering is not None
    edited = host.location.catalog.current.providers[0].name
    return keys, answering.owner.name, edited, [status.name for status in host.plugins.list()]


async def test_two_tools_that_a_plugin_adds_late_keep_their_places_when_it_is_reloaded(tmp_path: Path) -> None:
    extra = """
    @hookimpl
    def opencode_skills(scope):
        scope.add_tool("late", Tool(description="", execute=execute))
    """
    file = write(tmp_path / "acme.py", tool_plugin("one", extra=extra))

    async with opened(tmp_path / "work", plugins=[file]) as host:
        before = [(each.key, each.serial) for each in host.location.read().all(TOOLS)]
        await host.plugins.reload("acme")
        assert [(each.key, each.serial) for each in host.location.read().all(TOOLS)] == before


async def test_a_call_advertised_before_a_reload_is_stale_and_a_running_one_finishes_with_the_old_code(
    tmp_path: Path,
) -> None:
    source = """
    import anyio
    from plugin_sdk import *

    started, finish = anyio.Event(), anyio.Event()

    async def execute(call):
        started.set()
        await finish.wait()
        return ToolOutput(text="old")

    @hookimpl
    def opencode_tools():
        return {"answer": Tool(description="", execute=execute)}
    """
    file = write(tmp_path / "acme.py", source)
    settled: list[Completed | Refused] = []

    async with opened(tmp_path / "work", plugins=[file]) as host:
        offered = materialize(host.location.read)
        code = vars(sys.modules[offered._advertised["answer"].value.execute.__module__])

        async def call() -> None:
            settled.append(await offered.settle(ToolCall(id="1", name="answer")))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await code["started"].wait()
            write(file, tool_plugin("new"))
            await host.plugins.reload("acme")
            stale = await offered.settle(ToolCall(id="2", name="answer"))
            code["finish"].set()
        assert await ask(host) == "new"
    assert isinstance(stale, Refused)
    assert stale.reason == "stale"
    assert isinstance(settled[0], Completed)
    assert settled[0].output.text == "old"


# What goes


LIFE = {
    "plain": "",
    "options": OPTIONS.format(kind="str", default="'x'"),
    "attrs classes": "import attrs\n@attrs.define\nclass Box:\n    inner: 'Box | None' = None\nBOX = Box(Box())\n",
    "closure": "def make():\n    me = Thing\n    return lambda: me\nCLOSURE = make\n",
    "clean-up": "@hookimpl\ndef opencode_skills(scope):\n    scope.on_close(lambda: Thing)\n",
    "context variable": (
        "from contextvars import ContextVar\nVAR = ContextVar('acme')\ndef held(): return Thing\nVAR.set(held)\n"
    ),
    "context variable in a hook": (
        "from contextvars import ContextVar\nVAR = ContextVar('acme')\ndef held(): return Thing\n"
        "@hookimpl\ndef opencode_skills(scope):\n    VAR.set(held)\n"
        "@hookimpl\ndef opencode_catalog(catalog):\n    VAR.set(held)\n"
    ),
    "cycle": "class Loop: pass\nLOOP = Loop()\nLOOP.me = LOOP\n",
    "catalog": CATALOG.format(name="x"),
    "event hook": "@hookimpl\nasync def opencode_event(event):\n    return None\n",
    "exception": "try:\n    1/0\nexcept ZeroDivisionError as e:\n    ERROR = e\n",
}


def traces(name: str) -> list["weakref.ref[Any]"]:
    module = sys.modules[name]
    return [weakref.ref(module), weakref.ref(module.Thing), weakref.ref(module.execute)]


async def is_gone(refs: list["weakref.ref[Any]"]) -> bool:
    """Whether all are collected; the thread of a clean-up may hold them a moment longer than its host."""
    for _ in range(50):
        gc.collect()
        if all(ref() is None for ref in refs):
            return True
        await anyio.sleep(0.01)
    return False


@pytest.mark.parametrize("life", LIFE)
async def test_the_old_generation_is_garbage_collected(tmp_path: Path, life: str) -> None:
    source = tool_plugin("old", extra="class Thing: pass\n" + LIFE[life])
    file = write(tmp_path / "acme.py", source)
    config: Any = {"plugins": {"acme": {"says": "x"}}} if life == "options" else {}

    async with opened(tmp_path / "work", plugins=[file], config=config) as host:
        (name,) = [name for name in sys.modules if name.startswith("opencode_plugin_")]
        first = traces(name)
        await ask(host)
        await host.plugins.reload("acme")
        assert await is_gone(first)
        second = traces(name)
        await host.plugins.remove("acme")
        assert await is_gone(second)


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_a_failed_reload_imported_is_garbage_collected(tmp_path: Path, fault: str) -> None:
    watcher = "import sys, weakref\nclass Thing: pass\nsys.modules['acme_seen'].seen.append(weakref.ref(Thing))\n"
    good, config = good_code(fault)
    file = write(tmp_path / "acme.py", good)
    other = write(tmp_path / "other.py", HEAD + SOURCE.format(key="taken"))
    seen = sys.modules["acme_seen"] = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("acme_seen", None))
    seen.seen = []  # type: ignore[attr-defined]
    try:
        async with opened(tmp_path / "work", plugins=[file, other], config=config) as host:
            write(file, watcher + FAULTS[fault][0] if fault != "syntax error" else watcher + "1/0\n")
            try:
                await host.plugins.reload("acme")
            except PluginError:
                failed = True
            else:
                failed = False
            assert failed
            assert len(seen.seen) == 1
            assert await is_gone(seen.seen)
            assert await ask(host) == "old"
    finally:
        del sys.modules["acme_seen"]


async def test_the_clean_up_of_the_old_generation_runs_once_after_the_swap(tmp_path: Path) -> None:
    source = """
    from plugin_sdk import *
    from tests.host.making import a_tool

    @hookimpl
    def opencode_tools(scope):
        scope.on_close(lambda: print("closed", SAYS, scope.name))
        return {"answer": a_tool(SAYS)}

    SAYS = "old"
    """
    file = write(tmp_path / "acme.py", source.replace("print(", "LOG("))
    seen: list[tuple[str, str]] = []

    async with opened(tmp_path / "work") as host:

        def log(_word: str, generation: str, scope: str) -> None:
            found = host.location.read().find(TOOLS, "answer")
            seen.append((generation, found.value.description if found else "nothing"))

        import builtins

        builtins.LOG = log  # type: ignore[attr-defined]
        try:
            text = source.replace("print(", "LOG(").replace("a_tool(SAYS)", "Tool(description=SAYS, execute=None)")
            write(file, text)
            await host.plugins.load(candidate_of(file))
            write(file, text.replace('"old"', '"new"'))
            await host.plugins.reload("acme")
            assert seen == [("old", "new")]
            await host.plugins.remove("acme")
            assert seen == [("old", "new"), ("new", "nothing")]
        finally:
            del builtins.LOG  # type: ignore[attr-defined]


def candidate_of(path: Path) -> Any:
    from opencode_core.config import PluginSpec
    from opencode_core.plugins.loader import from_spec

    return from_spec(PluginSpec(text=str(path), base=path.parent, origin="the test"))


# Cancelling


async def test_a_reload_that_is_cancelled_at_any_point_leaves_the_old_or_the_new_whole(tmp_path: Path) -> None:
    source = tool_plugin("{n}", extra=SOURCE.format(key="key") + CATALOG.format(name="{n}") + EVENT)
    file = write(tmp_path / "acme.py", source.replace("{n}", "0"))
    outcomes = set()

    async with opened(tmp_path / "work", plugins=[file]) as host, host.open_location(tmp_path) as place:
        for where in (host.location, place):
            await where.catalog.add("zz", slow_edit, owner="the test")
        for steps in range(60):
            write(file, source.replace("{n}", str(steps + 1)))
            before = await ask(host)
            async with anyio.create_task_group() as group:
                group.start_soon(host.plugins.reload, "acme")
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            answers = {await ask(host), await ask(place)}
            edits = {where.catalog.current.providers[0].name.strip() for where in (host.location, place)}
            assert answers == edits
            assert answers in ({before}, {str(steps + 1)})
            assert sizes(host)[1:3] == (1, 2)
            outcomes.add(answers == {before})
    assert outcomes == {True, False}


EVENT = """
import anyio.lowlevel

@hookimpl
async def opencode_event(event):
    await anyio.lowlevel.checkpoint()
"""


async def slow_edit(draft: CatalogDraft) -> None:
    for _ in range(2):
        await anyio.lowlevel.checkpoint()


async def test_a_reload_that_is_cancelled_while_plugins_are_told_still_cleans_up(tmp_path: Path) -> None:
    gate = """
    import anyio
    from plugin_sdk import *

    @hookimpl
    async def opencode_event(event):
        if isinstance(event, PluginReloaded):
            await anyio.sleep_forever()
    """
    extra = """
    import pathlib

    @hookimpl
    def opencode_skills(scope):
        scope.on_close(lambda: pathlib.Path(__file__).with_suffix(".closed").touch())
    """
    gated = write(tmp_path / "gate.py", gate)
    file = write(tmp_path / "acme.py", tool_plugin("old", extra=extra))

    async with opened(tmp_path / "work", plugins=[gated, file]) as host:
        write(file, tool_plugin("new"))
        with anyio.move_on_after(0.05) as scope:
            await host.plugins.reload("acme")
        assert scope.cancelled_caught
        assert await ask(host) == "new"
        assert file.with_suffix(".closed").exists()
        with anyio.fail_after(5):
            await host.plugins.add(Saying("free", "free"))


async def test_two_reloads_at_once_happen_one_after_the_other(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("0"))

    async with opened(tmp_path / "work", plugins=[file]) as host:

        async def reload(says: str) -> None:
            write(file, tool_plugin(says))
            await host.plugins.reload("acme")

        async with anyio.create_task_group() as group:
            for number in range(1, 6):
                group.start_soon(reload, str(number))
        assert await ask(host) == file.read_text().split("text='")[1][0]
        assert host.plugins.get("acme").generation == 6
        assert tools(host) == ["answer"]
