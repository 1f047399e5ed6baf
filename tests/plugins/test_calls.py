"""Runtime hooks: asked in the order of plugins, each from what the one before left; a fault costs only its plugin."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from opencode_core.errors import PluginContractError, PluginError, PluginHookError, ToolFailure
from opencode_core.hookspecs import hookimpl
from opencode_core.model.catalog import CatalogDraft
from opencode_core.model.event.base import Event
from opencode_core.model.event.plugin import PluginRemoved
from opencode_core.model.location import Location
from opencode_core.model.permission import PermissionRequest
from opencode_core.model.provider import ProviderRequest, ProviderTurn
from opencode_core.model.tool import ToolCall, ToolOutput
from opencode_core.plugins.calls import (
    answer_permission,
    change_call,
    change_compaction,
    change_output,
    change_request,
    change_text,
    edit_catalog,
    pty_environment,
    tell,
)
from opencode_core.plugins.collect import collect_host, collect_location
from opencode_core.plugins.relay import Relay
from opencode_core.plugins.scope import Contribution, Owner, Registry, Scope, View
from opencode_core.plugins.slots import RUNTIME_HOOKS

LOCATION = Location(directory=Path("/project"), root=Path("/project"), is_git=False)
REQUEST = ProviderRequest(provider="p", model="m", system="baseline", parameters={"n": [1]}, headers={"a": "1"})
TURN = ProviderTurn(session="ses", agent="build", number=1)
CALL = ToolCall(id="1", name="bash", arguments={"command": "ls", "files": ["a"]}, session="ses")
MAY_I = PermissionRequest(action="bash", resources=("ls",))


@attrs.define(eq=False)
class Plugins:
    """A Location with plugins in it, and the faults that they were found to have."""

    host: Scope
    location: Scope
    relay: Relay = attrs.field(factory=Relay)
    faults: list[PluginError] = attrs.field(factory=list)

    def add(self, name: str, **hooks: Callable[..., Any]) -> None:
        module = ModuleType(name)
        for hook, function in hooks.items():
            setattr(module, hook, hookimpl(function))
        admitted = self.relay.admit(module, name=name)
        owner = Owner(name, "core" if name.startswith("core") else "plugin")
        collect_host(admitted, self.host.attach(owner), options={"name": name})
        collect_location(admitted, self.location.attach(owner), location=LOCATION, options={"name": name})

    def on_fault(self, contribution: Contribution[Any], error: PluginError) -> None:
        assert contribution.owner.name == error.plugin
        self.faults.append(error)

    @property
    def view(self) -> View:
        return self.location.read()

    def blamed(self) -> list[tuple[str, str | None]]:
        return [(each.plugin, each.hook) for each in self.faults]


@pytest.fixture
def plugins() -> Iterator[Plugins]:
    host = Registry().open()
    location = host.open_child("location", "/project")
    yield Plugins(host, location)
    host.closed = location.closed = True


async def text(plugins: Plugins) -> str:
    return await change_text(plugins.view, "-", "part", on_fault=plugins.on_fault)


def boom(**_: Any) -> None:
    raise RuntimeError("boom")


# The chain


async def test_plugins_are_asked_builtins_first_and_then_by_name_whatever_came_first(plugins: Plugins) -> None:
    for name in ("zeta", "acme", "core-z", "core-a"):
        plugins.add(name, opencode_text_complete=lambda text, options: f"{text} {options['name']}")
    assert await text(plugins) == "- core-a core-z acme zeta"


async def test_none_leaves_what_the_plugin_before_made(plugins: Plugins) -> None:
    plugins.add("a", opencode_text_complete=lambda text: text + "a")
    plugins.add("b", opencode_text_complete=lambda text: None)
    plugins.add("c", opencode_text_complete=lambda text: text + "c")
    assert (await text(plugins), plugins.faults) == ("-ac", [])


async def test_an_empty_text_is_a_change(plugins: Plugins) -> None:
    plugins.add("a", opencode_text_complete=lambda text: "")
    assert await text(plugins) == ""


async def test_without_plugins_everything_stays(plugins: Plugins) -> None:
    assert await text(plugins) == "-"
    assert await change_call(plugins.view, CALL, on_fault=plugins.on_fault) is CALL


async def test_async_and_plain_hooks_work_together(plugins: Plugins) -> None:
    async def later(text: str) -> str:
        await checkpoint()
        return text + "async"

    plugins.add("a", opencode_text_complete=later)
    plugins.add("b", opencode_text_complete=lambda text: text + " plain")
    assert await text(plugins) == "-async plain"


@pytest.mark.parametrize("raises", [RuntimeError("boom"), SystemExit(1), TimeoutError()], ids=repr)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
async def test_a_hook_that_raises_costs_only_its_own_plugin(
    plugins: Plugins, raises: BaseException, is_async: bool
) -> None:
    async def fails_later(text: str) -> str:
        raise raises

    def fails(text: str) -> str:
        raise raises

    plugins.add("a", opencode_text_complete=lambda text: text + "a")
    plugins.add("b", opencode_text_complete=fails_later if is_async else fails)
    plugins.add("c", opencode_text_complete=lambda text: text + "c")
    assert await text(plugins) == "-ac"
    (fault,) = plugins.faults
    assert isinstance(fault, PluginHookError)
    assert (fault.plugin, fault.hook) == ("b", "opencode_text_complete")
    assert type(raises).__name__ in fault.problem


async def test_an_answer_of_the_wrong_type_is_ignored_and_reported(plugins: Plugins) -> None:
    plugins.add("a", opencode_text_complete=lambda text: 7)
    plugins.add("b", opencode_text_complete=lambda text: text + "b")
    assert await text(plugins) == "-b"
    (fault,) = plugins.faults
    assert isinstance(fault, PluginContractError)
    assert str(fault) == (
        "The hook 'opencode_text_complete' of the plugin 'a' returned something else than a str or None. "
        "Its answer was ignored; see docs/reference/hooks.md."
    )
    assert fault.place is not None
    assert fault.place.file == __file__


async def test_a_cancelled_hook_is_not_a_fault(plugins: Plugins) -> None:
    asked: list[str] = []

    async def waits(text: str) -> str:
        asked.append("a")
        await anyio.sleep_forever()
        raise AssertionError

    plugins.add("a", opencode_text_complete=waits)
    plugins.add("b", opencode_text_complete=lambda text: asked.append("b"))
    with anyio.move_on_after(0.02) as scope:
        await text(plugins)
    assert (scope.cancelled_caught, asked, plugins.faults) == (True, ["a"], [])


@pytest.mark.parametrize("hook", ["opencode_permission", "opencode_event", "opencode_tool_before"])
async def test_cancellation_passes_through_every_kind_of_call_untouched(plugins: Plugins, hook: str) -> None:
    async def waits() -> None:
        await anyio.sleep_forever()

    plugins.add("a", **{hook: waits})
    calls: dict[str, Callable[[], Any]] = {
        "opencode_permission": lambda: answer_permission(plugins.view, MAY_I, on_fault=plugins.on_fault),
        "opencode_event": lambda: tell([plugins.view], Event(), on_fault=plugins.on_fault),
        "opencode_tool_before": lambda: change_call(plugins.view, CALL, on_fault=plugins.on_fault),
    }
    answers: list[Any] = []
    with anyio.move_on_after(0.02) as scope:
        answers.append(await calls[hook]())
    assert (scope.cancelled_caught, answers, plugins.faults) == (True, [], [])


# Requests


async def request(plugins: Plugins) -> ProviderRequest:
    return await change_request(plugins.view, REQUEST, TURN, on_fault=plugins.on_fault)


async def test_parameters_and_headers_can_be_changed(plugins: Plugins) -> None:
    plugins.add("a", opencode_request=lambda request: attrs.evolve(request, headers={**request.headers, "b": "2"}))
    plugins.add("b", opencode_request=lambda request: attrs.evolve(request, parameters={"temperature": 0}))
    changed = await request(plugins)
    assert (changed.headers, changed.parameters) == ({"a": "1", "b": "2"}, {"temperature": 0})


async def test_changing_the_baseline_is_refused(plugins: Plugins) -> None:
    plugins.add("a", opencode_request=lambda request: attrs.evolve(request, system="other", headers={}))
    plugins.add("b", opencode_request=lambda request, turn: attrs.evolve(request, headers={"turn": str(turn.number)}))
    changed = await request(plugins)
    assert (changed.system, changed.headers) == ("baseline", {"turn": "1"})
    assert plugins.blamed() == [("a", "opencode_request")]
    assert "changed the baseline, which only context sources may do" in plugins.faults[0].problem


@pytest.mark.parametrize(
    "change", [{"model": "other"}, {"provider": "other"}, {"messages": ({"role": "user"},)}, {"tools": ({},)}]
)
async def test_changing_anything_but_parameters_and_headers_is_refused(plugins: Plugins, change: dict) -> None:
    plugins.add("a", opencode_request=lambda request: attrs.evolve(request, **change))
    plugins.add("b", opencode_request=lambda request: attrs.evolve(request, headers={"b": "2"}))
    changed = await request(plugins)
    assert changed == attrs.evolve(REQUEST, headers={"b": "2"})
    assert "changed more than parameters and headers" in plugins.faults[0].problem


async def test_what_is_not_a_request_is_refused(plugins: Plugins) -> None:
    plugins.add("a", opencode_request=lambda request: {"headers": {}})
    assert await request(plugins) == REQUEST
    assert plugins.blamed() == [("a", "opencode_request")]


async def test_a_request_cannot_be_changed_in_place(plugins: Plugins) -> None:
    def in_place(request: ProviderRequest) -> None:
        request.headers["x"] = "y"  # type: ignore[index]

    def deep_inside(request: ProviderRequest) -> None:
        request.parameters["n"].append(2)  # type: ignore[union-attr]

    plugins.add("a", opencode_request=in_place)
    plugins.add("b", opencode_request=deep_inside)
    changed = await request(plugins)
    assert (changed.headers, changed.parameters) == ({"a": "1"}, {"n": [1]})
    assert plugins.blamed() == [("a", "opencode_request")]


# Tool calls


async def call(plugins: Plugins) -> ToolCall:
    return await change_call(plugins.view, CALL, on_fault=plugins.on_fault)


async def test_the_arguments_of_a_call_can_be_changed(plugins: Plugins) -> None:
    plugins.add("a", opencode_tool_before=lambda call: attrs.evolve(call, arguments={"command": "pwd"}))
    assert await call(plugins) == attrs.evolve(CALL, arguments={"command": "pwd"})


@pytest.mark.parametrize("change", [{"name": "rm"}, {"id": "2"}, {"session": "other"}, {"agent": "other"}], ids=str)
async def test_nothing_else_of_a_call_can_be_changed(plugins: Plugins, change: dict[str, str]) -> None:
    plugins.add("a", opencode_tool_before=lambda call: attrs.evolve(call, arguments={}, **change))
    assert await call(plugins) == CALL
    assert "changed more than the arguments" in plugins.faults[0].problem


async def test_a_call_cannot_be_changed_in_place(plugins: Plugins) -> None:
    def deep_inside(call: ToolCall) -> None:
        call.arguments["files"].append("b")  # type: ignore[union-attr]

    plugins.add("a", opencode_tool_before=deep_inside)
    assert (await call(plugins)).arguments["files"] == ["a"]


async def test_a_tool_failure_before_a_call_passes_and_nobody_is_blamed(plugins: Plugins) -> None:
    asked: list[str] = []

    async def guard(call: ToolCall) -> None:
        raise ToolFailure("not here")

    plugins.add("a", opencode_tool_before=guard)
    plugins.add("b", opencode_tool_before=lambda call: asked.append("b"))
    with pytest.raises(ToolFailure, match="not here"):
        await call(plugins)
    assert (asked, plugins.faults) == ([], [])


async def test_a_tool_failure_anywhere_else_is_a_fault(plugins: Plugins) -> None:
    def after(output: ToolOutput) -> None:
        raise ToolFailure("too late")

    plugins.add("a", opencode_tool_after=after)
    plugins.add("b", opencode_tool_after=lambda output, call: attrs.evolve(output, text=f"{call.name}: {output.text}"))
    output = await change_output(plugins.view, CALL, ToolOutput(text="x"), on_fault=plugins.on_fault)
    assert output.text == "bash: x"
    assert "raised ToolFailure, which only opencode_tool_before may do" in plugins.faults[0].problem


async def test_an_output_cannot_be_changed_in_place(plugins: Plugins) -> None:
    def deep_inside(output: ToolOutput) -> None:
        output.structured["lines"].append(2)  # type: ignore[call-overload,index,union-attr]

    plugins.add("a", opencode_tool_after=deep_inside)
    before = ToolOutput(structured={"lines": [1]})
    output = await change_output(plugins.view, CALL, before, on_fault=plugins.on_fault)
    assert output.structured == {"lines": [1]}


async def test_the_prompt_of_a_compaction_can_be_changed(plugins: Plugins) -> None:
    plugins.add("a", opencode_compaction=lambda prompt: prompt + " Keep numbers.")
    plugins.add("b", opencode_compaction=lambda prompt: b"bytes")
    assert await change_compaction(plugins.view, "Sum up.", on_fault=plugins.on_fault) == "Sum up. Keep numbers."
    assert plugins.blamed() == [("b", "opencode_compaction")]


# Permission


async def permission(plugins: Plugins) -> str | None:
    return await answer_permission(plugins.view, MAY_I, on_fault=plugins.on_fault)


async def test_the_first_answer_in_the_order_wins_and_the_rest_are_not_asked(plugins: Plugins) -> None:
    asked: list[str] = []
    plugins.add("c", opencode_permission=lambda request: asked.append("c"))
    plugins.add("b", opencode_permission=lambda request: "deny")
    plugins.add("a", opencode_permission=lambda request: None)
    assert (await permission(plugins), asked) == ("deny", [])


async def test_nobodys_opinion_is_no_answer(plugins: Plugins) -> None:
    plugins.add("a", opencode_permission=lambda request: None)
    assert await permission(plugins) is None


@pytest.mark.parametrize("answer", ["yes", True, 1, ["allow"]], ids=repr)
async def test_an_unknown_answer_counts_as_ask(plugins: Plugins, answer: Any) -> None:
    plugins.add("a", opencode_permission=lambda request: answer)
    plugins.add("b", opencode_permission=lambda request: "allow")
    assert await permission(plugins) == "ask"
    assert plugins.blamed() == [("a", "opencode_permission")]


@pytest.mark.parametrize("raises", [RuntimeError, SystemExit, ToolFailure])
async def test_a_guard_that_raises_counts_as_ask(plugins: Plugins, raises: type[BaseException]) -> None:
    async def guard(request: PermissionRequest) -> None:
        raise raises

    plugins.add("a", opencode_permission=guard)
    plugins.add("b", opencode_permission=lambda request: "allow")
    assert await permission(plugins) == "ask"
    assert plugins.blamed() == [("a", "opencode_permission")]


async def test_an_async_guard_answers(plugins: Plugins) -> None:
    async def guard(request: PermissionRequest) -> str:
        await checkpoint()
        return "allow" if request.resources == ("ls",) else "deny"

    plugins.add("a", opencode_permission=guard)
    assert await permission(plugins) == "allow"


# Events


async def test_everybody_is_told_in_order_also_after_one_failed(plugins: Plugins) -> None:
    told: list[str] = []

    async def later(event: Event, options: dict[str, str]) -> None:
        await checkpoint()
        told.append(options["name"])

    plugins.add("zeta", opencode_event=lambda event, options: told.append(options["name"]))
    plugins.add("broken", opencode_event=lambda event: boom())
    plugins.add("exits", opencode_event=lambda event: sys.exit(1))
    plugins.add("acme", opencode_event=later)
    await tell([plugins.view], PluginRemoved(plugin="x", generation=0), on_fault=plugins.on_fault)
    assert told == ["acme", "zeta"]
    assert plugins.blamed() == [("broken", "opencode_event"), ("exits", "opencode_event")]


async def test_a_plugin_that_never_returns_from_an_event_is_left_behind(plugins: Plugins) -> None:
    told: list[str] = []

    async def never(event: Event) -> None:
        await anyio.sleep_forever()

    plugins.add("acme", opencode_event=never)
    plugins.add("zeta", opencode_event=lambda event: told.append("zeta"))
    await tell([plugins.view], Event(), on_fault=plugins.on_fault, deadline=0.01)
    assert told == ["zeta"]
    assert "did not return in 0.01 s" in plugins.faults[0].problem


async def test_a_plugin_that_several_views_show_is_told_once(plugins: Plugins) -> None:
    told: list[Event] = []
    plugins.add("acme", opencode_event=lambda event: told.append(event))
    event = Event()
    await tell([plugins.host.read(), plugins.view, plugins.view], event, on_fault=plugins.on_fault)
    assert told == [event]


# Terminals


def environment(plugins: Plugins) -> dict[str, str]:
    return pty_environment(plugins.view, LOCATION, Path("/project/sub"), on_fault=plugins.on_fault)


def test_a_later_plugin_overrides_the_variables_of_an_earlier_one(plugins: Plugins) -> None:
    plugins.add("zeta", opencode_pty_environment=lambda: {"A": "zeta"})
    plugins.add("core-a", opencode_pty_environment=lambda: {"A": "core", "B": "core", "C": "core"})
    plugins.add("acme", opencode_pty_environment=lambda location, cwd: {"A": "acme", "B": cwd.name})
    assert environment(plugins) == {"A": "zeta", "B": "sub", "C": "core"}


class Broken(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        raise RuntimeError("no values today")

    def __iter__(self) -> Iterator[str]:
        return iter("AB")

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return "broken mapping"


@pytest.mark.parametrize("answer", [["A=1"], {"A": 1}, {1: "A"}, "A=1", Broken()], ids=repr)
def test_what_is_not_an_environment_is_left_out_whole(plugins: Plugins, answer: Any) -> None:
    plugins.add("acme", opencode_pty_environment=lambda: answer)
    plugins.add("zeta", opencode_pty_environment=lambda: {"Z": "1"})
    assert environment(plugins) == {"Z": "1"}
    assert plugins.blamed() == [("acme", "opencode_pty_environment")]


def test_a_plugin_that_raises_leaves_the_terminal_to_the_others(plugins: Plugins) -> None:
    plugins.add("acme", opencode_pty_environment=lambda: sys.exit(1))
    plugins.add("none", opencode_pty_environment=lambda: None)
    plugins.add("zeta", opencode_pty_environment=lambda: {"Z": "1"})
    assert environment(plugins) == {"Z": "1"}
    assert plugins.blamed() == [("acme", "opencode_pty_environment")]


# The catalog


def test_a_plugin_edits_a_draft_of_the_catalog(plugins: Plugins) -> None:
    plugins.add("acme", opencode_catalog=lambda catalog, location: catalog.provider(location.root.name))
    (contribution,) = plugins.view.all(RUNTIME_HOOKS["opencode_catalog"])
    draft = CatalogDraft()
    edit_catalog(contribution, draft, LOCATION)
    assert [each.id for each in draft.finish().providers] == ["project"]


@pytest.mark.parametrize("raises", [RuntimeError, SystemExit])
def test_edits_that_fail_are_known_to_be_the_plugins(plugins: Plugins, raises: type[BaseException]) -> None:
    def opencode_catalog(catalog: CatalogDraft) -> None:
        raise raises

    plugins.add("acme", opencode_catalog=opencode_catalog)
    (contribution,) = plugins.view.all(RUNTIME_HOOKS["opencode_catalog"])
    with pytest.raises(PluginHookError, match="'opencode_catalog' of the plugin 'acme' raised"):
        edit_catalog(contribution, CatalogDraft(), LOCATION)
