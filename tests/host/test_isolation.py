"""The fault of one plugin costs only that plugin, only where it happened, and is told with its file and line."""

import logging
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import anyio
import attrs
import pytest

from opencode_core.config import PluginSpec
from opencode_core.errors import PluginError
from opencode_core.model.event.plugin import PluginAdded, PluginFailed, PluginRemoved
from opencode_core.model.plugin import Diagnostic
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.loader import from_spec
from opencode_core.plugins.slots import CONTEXT_SOURCES
from plugin_sdk import CatalogDraft, ContextSource, Event, PluginScope, Tool, hookimpl
from tests.host.making import (
    HEAD,
    PLUGINS,
    Person,
    Saying,
    a_tool,
    ask,
    distribution,
    opened,
    tool_plugin,
    tools,
    write,
)

pytestmark = pytest.mark.anyio


def source(key: str) -> ContextSource[str]:
    async def load() -> str:
        return "x"

    return ContextSource(key=key, load=load, baseline=str, update=lambda before, now: now)


# At import


@pytest.mark.parametrize(
    ("code", "problem", "line"),
    [
        ("x = 1\nraise ValueError('no')\n", "ValueError: no", 2),
        ("\n\nraise SystemExit(3)\n", "SystemExit: 3", 3),
        ("import acme_not_there\n", "No module named 'acme_not_there'", 1),
        ("def f(:\n", "SyntaxError", 1),
        ("from plugin_sdk import *\n\n@hookimpl\ndef opencode_toolz():\n    pass\n", "does not exist", 3),
    ],
)
async def test_a_plugin_that_cannot_be_imported_costs_only_itself(
    tmp_path: Path, code: str, problem: str, line: int
) -> None:
    bad = write(tmp_path / "bad.py", code)

    async with opened(tmp_path / "work", plugins=[bad, Saying("good")]) as host:
        status = host.plugins.get("bad")
        assert status.state == "failed"
        assert problem in status.diagnostics[0].problem
        assert status.diagnostics[0].place == f"{bad}:{line}"
        assert await ask(host) == "good"


async def test_an_entry_point_whose_module_is_missing_names_its_distribution(tmp_path: Path, site: Path) -> None:
    distribution(site, "acme-dist", {"acme": "acme_missing.plugin"})

    async with opened(tmp_path / "work", entry_points=True, plugins=[Saying("good")]) as host:
        status = host.plugins.get("acme")
        assert status.state == "failed"
        assert "'acme-dist' as 'acme_missing.plugin', which is not installed" in status.diagnostics[0].problem
        assert "Reinstall" in status.diagnostics[0].remedy
        assert await ask(host) == "good"


async def test_an_object_that_cannot_be_searched_for_hooks_costs_only_itself(tmp_path: Path) -> None:
    class Odd:
        def __dir__(self) -> Iterator[str]:
            raise ValueError("no")

    async with opened(tmp_path, plugins=[Odd(), Saying("good")]) as host:
        assert host.plugins.get("odd").state == "failed"
        assert await ask(host) == "good"


@attrs.define
class SlowClock:
    """Every look at it takes a second."""

    time: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        self.time += 1.0
        return self.time


async def test_a_slow_import_is_named(tmp_path: Path) -> None:
    slow = write(tmp_path / "slow.py", tool_plugin("slow"))

    async with opened(tmp_path / "work", plugins=[slow], clock=SlowClock()) as host:
        status = host.plugins.get("slow")
        assert status.import_seconds == 1.0
        assert [(each.problem, each.severity) for each in status.diagnostics] == [
            ("Importing the plugin 'slow' took 1.0 s.", "warning")
        ]


async def test_a_function_that_only_looks_like_a_hook_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", tool_plugin("x", extra="def opencode_skills():\n    return ()\n"))

    async with opened(tmp_path / "work", plugins=[file]) as host:
        (diagnostic,) = host.plugins.get("acme").diagnostics
        assert "'opencode_skills' of the plugin 'acme' has the name of a hook" in diagnostic.problem
        assert diagnostic.severity == "warning"
        assert await ask(host) == "x"


async def test_a_plugin_without_a_hook_is_refused_and_costs_only_itself(tmp_path: Path) -> None:
    file = write(tmp_path / "acme.py", "def opencode_tools():\n    return {}\n")

    async with opened(tmp_path / "work", plugins=[file, Saying("good")]) as host:
        status = host.plugins.get("acme")
        assert (status.state, status.hooks) == ("failed", ())
        assert [(each.problem, each.remedy) for each in status.diagnostics] == [
            ("The plugin 'acme' implements no hook.", "Mark 'opencode_tools' with @hookimpl.")
        ]
        assert await ask(host) == "good"


# In a hook


class Picky:
    """Works in the folder that is called 'work' only."""

    @hookimpl
    def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
        if not scope.name.endswith("work"):
            raise ValueError("not here")
        return {"picky": a_tool("picky")}


async def test_a_hook_that_raises_in_one_location_keeps_the_plugin_out_of_that_location_only(tmp_path: Path) -> None:
    async with (
        opened(tmp_path / "work", plugins=[Picky(), Saying("good")]) as host,
        host.open_location(tmp_path) as place,
    ):
        assert await ask(place, "picky") == "unknown"
        assert await ask(place) == "good"
        assert await ask(host, "picky") == "picky"
        assert (host.plugins.get("picky").state, host.plugins.get("picky").quarantined) == ("active", (str(tmp_path),))
        (diagnostic,) = host.plugins.get("picky").diagnostics
        assert (diagnostic.hook, diagnostic.scope) == ("opencode_tools", str(tmp_path))
        assert (diagnostic.file, diagnostic.line is not None) == (__file__, True)


async def test_a_plugin_that_is_kept_out_of_every_location_is_listed_as_quarantined(tmp_path: Path) -> None:
    async with opened(tmp_path, plugins=[Picky(), Saying("good")]) as host:
        listed = [("picky", "quarantined"), ("saying", "active")]
        assert [(each.name, each.state) for each in host.plugins.list()] == listed
        async with host.open_location(_made(tmp_path / "work")):
            assert host.plugins.get("picky").state == "active"  # it serves one of the two
        assert host.plugins.get("picky").state == "quarantined"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def test_a_failure_is_published_with_its_file_and_line(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.py", "\n1/0\n")

    async with opened(tmp_path / "work") as host, host.events.subscribe(PluginFailed) as failed:
        await host._boarding._load_one(_candidate(bad), None)
        event = await anext(failed)
    assert (event.plugin, event.file, event.line) == ("bad", str(bad), 2)


async def test_a_key_without_namespace_is_reported_at_the_plugins_own_line(tmp_path: Path) -> None:
    code = """
    from plugin_sdk import *

    @hookimpl
    def opencode_context_sources():
        return [ContextSource(key="date", load=None, baseline=str, update=None)]
    """
    file = write(tmp_path / "acme.py", code)

    async with opened(tmp_path / "work", plugins=[file]) as host:
        (diagnostic,) = host.plugins.get("acme").diagnostics
        assert "'date'" in diagnostic.problem
        assert diagnostic.place == f"{file}:6"


@pytest.mark.behaviour("PL-02")
async def test_a_plugin_that_fails_in_the_host_contributes_nothing_anywhere(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def opencode_provider_adapters(self) -> int:
            return 1

        @hookimpl
        def opencode_tools(self) -> Mapping[str, Tool]:
            return {"broken": a_tool("broken")}

    async with opened(tmp_path) as host:
        with pytest.raises(PluginError, match="'opencode_provider_adapters' of the plugin 'broken' returned a 'int'"):
            await host.plugins.add(Broken())
        assert tools(host) == []
        assert host.plugins.get("broken").state == "failed"


async def test_of_two_plugins_with_one_key_the_second_in_order_is_kept_out_and_both_are_named(tmp_path: Path) -> None:
    class Contending:
        @hookimpl
        def opencode_context_sources(self) -> list[ContextSource[str]]:
            return [source("acme/key")]

        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            return {"contending": a_tool("x")}

    plugins = {"zebra": Contending(), "ant": Contending(), "good": Saying("good")}
    async with opened(tmp_path, plugins=plugins) as host:
        (diagnostic,) = host.plugins.get("zebra").diagnostics
        assert "'acme/key' is contributed by both 'ant' and 'zebra'" in diagnostic.problem
        assert (diagnostic.hook, diagnostic.file) == ("opencode_context_sources", __file__)
        assert host.plugins.get("ant").diagnostics == ()
        assert [each.owner.name for each in host.location.read().all(CONTEXT_SOURCES)] == ["ant"]
        assert await ask(host) == "good"


async def test_catalog_edits_that_raise_keep_the_plugin_out_and_the_catalog_as_it_was(tmp_path: Path) -> None:
    class Editing:
        @hookimpl
        def opencode_catalog(self, catalog: CatalogDraft) -> None:
            catalog.provider("half")
            catalog.model("nobody", "m")

    class Fine:
        @hookimpl
        def opencode_catalog(self, catalog: CatalogDraft) -> None:
            catalog.provider("fine")

    async with opened(tmp_path, plugins=[Editing(), Fine()]) as host:
        assert [each.id for each in host.location.catalog.current.providers] == ["fine"]
        (diagnostic,) = host.plugins.get("editing").diagnostics
        assert (diagnostic.hook, diagnostic.file) == ("opencode_catalog", __file__)


async def test_removing_a_plugin_whose_provider_another_one_edits_costs_the_other_its_edits(tmp_path: Path) -> None:
    class Base:
        @hookimpl
        def opencode_catalog(self, catalog: CatalogDraft) -> None:
            catalog.provider("acme")

    class Dependent:
        @hookimpl
        def opencode_catalog(self, catalog: CatalogDraft) -> None:
            catalog.model("acme", "large")

    async with opened(tmp_path, plugins=[Base(), Dependent(), Saying("good")]) as host:
        await host.plugins.remove("base")
        assert host.location.catalog.current.models == ()
        assert "'acme', which is not in the catalog" in host.plugins.get("dependent").diagnostics[0].problem
        assert await ask(host) == "good"


# At clean-up


async def test_a_clean_up_that_never_returns_does_not_keep_the_host_open(tmp_path: Path) -> None:
    for_ever = threading.Event()

    class Stuck:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            scope.on_close(for_ever.wait)
            scope.on_close(anyio.sleep_forever)
            return {}

    try:
        async with opened(tmp_path, plugins=[Stuck()], cleanup_deadline=0.05) as host:
            pass
    finally:
        for_ever.set()
    problems = [each.problem for each in host.plugins.get("stuck").diagnostics]
    assert problems == [
        "The clean-up 'sleep_forever' of the plugin 'stuck' did not return in 0.05 s.",
        "The clean-up 'Event.wait' of the plugin 'stuck' did not return in 0.05 s.",
    ]


async def test_a_clean_up_that_raises_is_a_diagnostic_with_its_line(tmp_path: Path) -> None:
    extra = """
    @hookimpl
    def opencode_skills(scope):
        def clean():
            raise ValueError("no")
        scope.on_close(clean)
    """
    file = write(tmp_path / "acme.py", tool_plugin("x", extra=extra))

    async with opened(tmp_path / "work", plugins=[file]) as host:
        pass
    (diagnostic,) = host.plugins.get("acme").diagnostics
    assert "raised: ValueError: no" in diagnostic.problem
    assert diagnostic.place == f"{file}:6"


async def test_a_location_that_closes_runs_the_clean_ups_of_that_location_only(tmp_path: Path) -> None:
    closed: list[str] = []

    class Tidy:
        @hookimpl
        def opencode_tools(self, scope: PluginScope) -> Mapping[str, Tool]:
            scope.on_close(lambda: closed.append(scope.name))
            return {}

    async with opened(tmp_path / "work", plugins=[Tidy()]) as host:
        async with host.open_location(tmp_path):
            pass
        assert closed == [str(tmp_path)]
    assert closed == [str(tmp_path), str(tmp_path / "work")]


# Told


async def test_a_fault_is_logged_loudly_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = write(tmp_path / "bad.py", "1/0")

    async with opened(tmp_path / "work", plugins=[bad]) as host:
        for _ in range(2):
            with pytest.raises(PluginError):
                await host.plugins.reload("bad")
    logged = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert len(logged) == 1
    assert "'bad' could not be imported: ZeroDivisionError" in logged[0].getMessage()


async def test_events_are_published_after_the_change_is_visible(tmp_path: Path) -> None:
    heard: list[tuple[type[Event], list[str], str]] = []
    bad = write(tmp_path / "bad.py", "1/0")

    async with opened(tmp_path / "work") as host:

        def listen(event: Event) -> None:
            states = ",".join(status.state for status in host.plugins.list())
            heard.append((type(event), tools(host), states))

        host.events.listen(listen)
        await host.plugins.add(Saying("one"))
        await host.plugins.remove("saying")
        await host._boarding._load_one(_candidate(bad), None)
    assert heard == [
        (PluginAdded, ["answer"], "active"),
        (PluginRemoved, [], ""),
        (PluginFailed, [], "failed"),
    ]


def _candidate(path: Path) -> Candidate:
    return from_spec(PluginSpec(text=str(path), base=path.parent, origin="the test"))


async def test_plugins_hear_events_and_a_fault_of_one_is_nobody_elses(tmp_path: Path) -> None:
    heard: list[str] = []

    class Deaf:
        @hookimpl
        def opencode_event(self, event: Event) -> None:
            raise ValueError("no")

    class Hearing:
        @hookimpl
        async def opencode_event(self, event: Event) -> None:
            await anyio.lowlevel.checkpoint()
            heard.append(type(event).__name__)

    async with opened(tmp_path, plugins={"a_deaf": Deaf(), "hearing": Hearing()}) as host:
        heard.clear()
        await host.plugins.add(Saying("one"))
        await host.plugins.remove("saying")
        diagnostics: list[Diagnostic] = list(host.plugins.get("a_deaf").diagnostics)
    assert heard == ["PluginAdded", "PluginRemoved"]
    assert [(each.hook, each.file) for each in diagnostics] == [("opencode_event", __file__)]


async def test_a_plugin_may_change_plugins_when_it_hears_an_event(tmp_path: Path) -> None:
    class Reacting:
        @hookimpl
        async def opencode_event(self, event: Event) -> None:
            if isinstance(event, PluginAdded) and event.plugin == "one":
                await host.plugins.add(Saying("two", "two"), name="two")

    async with opened(tmp_path, plugins=[Reacting()]) as host:
        with anyio.fail_after(5):
            await host.plugins.add(Saying("one", "one"), name="one")
        assert tools(host) == ["one", "two"]


async def test_a_plugin_of_a_project_hears_what_happens_while_its_location_is_open(tmp_path: Path) -> None:
    extra = """
    heard = []

    @hookimpl
    def opencode_event(event):
        heard.append(event)
        opencode_skills.count = len(heard)

    @hookimpl
    def opencode_skills():
        pass
    """
    write(tmp_path / PLUGINS / "acme.py", HEAD + tool_plugin("x", extra=extra))

    async with opened(tmp_path, ask_trust=Person()) as host:
        await host.plugins.add(Saying("one", "one"))
        (record,) = [each for each in host.plugins.entries() if each.name == "acme"]
        assert record.generation is not None
        assert vars(record.generation.hooks._implementations["opencode_skills"].function)["count"] >= 1
