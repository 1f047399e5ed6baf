"""Collecting: a plugin's answers are taken when they are what the hook promises, and refused whole when not."""

import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest
from click import Group

from opencode_core.errors import PluginContractError, PluginError, PluginHookError
from opencode_core.hookspecs import hookimpl
from opencode_core.model.agent import Agent
from opencode_core.model.catalog import CatalogDraft
from opencode_core.model.command import Command
from opencode_core.model.context import ContextSource
from opencode_core.model.event.base import Event
from opencode_core.model.location import Location
from opencode_core.model.permission import PermissionRequest
from opencode_core.model.provider import ProviderRequest, ProviderTurn, StreamEvent
from opencode_core.model.skill import Skill
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.plugins import calls
from opencode_core.plugins.collect import MOST_ITEMS, collect_host, collect_location
from opencode_core.plugins.relay import Hooks, Relay, signatures
from opencode_core.plugins.scope import Attachment, Owner, Registry, Slot, View
from opencode_core.plugins.slots import (
    AGENTS,
    COMMANDS,
    CONTEXT_SOURCES,
    PROVIDER_ADAPTERS,
    RUNTIME_HOOKS,
    SKILLS,
    STORAGE_BACKENDS,
    TOOLS,
)

LOCATION = Location(directory=Path("/project"), root=Path("/project"), is_git=False)
OPTIONS = object()


async def execute(call: ToolCall) -> ToolOutput:
    return ToolOutput()


async def open_store(url: str) -> Any: ...


async def load() -> str:
    return "value"


def source(key: str) -> ContextSource[str]:
    return ContextSource(key=key, load=load, baseline=str, update=lambda before, now: now)


class Adapter:
    """Speaks to nobody."""

    def __init__(self, name: str = "echo") -> None:
        self.name = name

    async def stream(self, request: ProviderRequest) -> AsyncIterator[StreamEvent]:
        yield StreamEvent(kind="finish")


TOOL = Tool(description="Does it.", execute=execute)


def admitted(**hooks: Callable[..., Any]) -> Hooks:
    module = ModuleType("acme_plugin")
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    return Relay().admit(module, name="acme")


class Collected:
    """What a Location shows after one plugin was asked, and how that went."""

    def __init__(self, hooks: Hooks, *, confined: bool = False) -> None:
        host = Registry().open()
        location = host.open_child("location", "/project")
        parts = [scope.attach(Owner("acme"), staged=True) for scope in (host, location)]
        self.error: PluginError | None = None
        try:
            if not confined:
                collect_host(hooks, parts[0], options=OPTIONS)
            collect_location(hooks, parts[1], location=LOCATION, options=OPTIONS, confined=confined)
            for part in parts:
                part.commit()
        except PluginError as error:
            self.error = error
        self.view = location.read()
        host.closed = location.closed = True

    def keys(self, slot: Slot[Any]) -> list[str]:
        assert self.error is None
        return [each.key for each in self.view.all(slot)]


def refusal(hook: str, function: Callable[..., Any]) -> PluginError:
    """Collects what must be refused, and shows that it says so, and that nothing of it is registered."""
    others: dict[str, Callable[..., Any]] = {
        "opencode_storage_backends": lambda: {"other": open_store},
        "opencode_tools": lambda: {"other": TOOL},
        "opencode_event": lambda event: None,
    }
    collected = Collected(admitted(**{**others, hook: function}))
    error = collected.error
    assert error is not None
    assert list(collected.view) == []
    assert error.problem.startswith(f"The hook '{hook}' of the plugin 'acme' ")
    assert (error.plugin, error.hook, bool(error.remedy)) == ("acme", hook, True)
    return error


# Every hook of the contract

Answer: TypeAlias = tuple[Any, Slot[Any] | None, list[str]]

CONTRIBUTED: dict[str, Answer] = {
    "opencode_storage_backends": ({"b": open_store, "a": open_store}, STORAGE_BACKENDS, ["a", "b"]),
    "opencode_provider_adapters": ([Adapter("b"), Adapter("a")], PROVIDER_ADAPTERS, ["a", "b"]),
    "opencode_context_sources": ([source("acme/b"), source("acme/a")], CONTEXT_SOURCES, ["plugin/acme"]),
    "opencode_tools": ({"b": TOOL, "a": TOOL}, TOOLS, ["a", "b"]),
    "opencode_skills": ([Skill(name="b", body=""), Skill(name="a", body="")], SKILLS, ["a", "b"]),
    "opencode_agents": ([Agent(name="b"), Agent(name="a")], AGENTS, ["a", "b"]),
    "opencode_commands": ([Command(name="b", template=""), Command(name="a", template="")], COMMANDS, ["a", "b"]),
}


async def _request(view: View) -> object:
    request = ProviderRequest(provider="p", model="m", system="s")
    return await calls.change_request(
        view, request, ProviderTurn(session="s", agent="a", number=1), on_fault=raise_fault
    )


async def _catalog(view: View) -> object:
    (contribution,) = view.all(RUNTIME_HOOKS["opencode_catalog"])
    calls.edit_catalog(contribution, CatalogDraft(), LOCATION)
    return None


async def _environment(view: View) -> object:
    return calls.pty_environment(view, LOCATION, Path("/project"), on_fault=raise_fault)


CALL = ToolCall(id="1", name="a")

CALLED: dict[str, Callable[[View], Any]] = {
    "opencode_catalog": _catalog,
    "opencode_pty_environment": _environment,
    "opencode_request": _request,
    "opencode_tool_before": lambda view: calls.change_call(view, CALL, on_fault=raise_fault),
    "opencode_tool_after": lambda view: calls.change_output(view, CALL, ToolOutput(), on_fault=raise_fault),
    "opencode_permission": lambda view: calls.answer_permission(
        view, PermissionRequest(action="a", resources=()), on_fault=raise_fault
    ),
    "opencode_text_complete": lambda view: calls.change_text(view, "text", "part", on_fault=raise_fault),
    "opencode_compaction": lambda view: calls.change_compaction(view, "prompt", on_fault=raise_fault),
    "opencode_event": lambda view: calls.tell([view], Event(), on_fault=raise_fault),
}


def raise_fault(contribution: object, error: PluginError) -> None:
    raise error


def asks_for_everything(hook: str, answer: Any, asked: list[tuple[Any, ...]]) -> Callable[..., Any]:
    """A function that names every argument that the contract allows."""
    names = ", ".join(signatures()[hook])
    namespace: dict[str, Any] = {"asked": asked, "answer": answer}
    exec(f"def function({names}):\n    asked.append(({names},))\n    return answer", namespace)
    function: Callable[..., Any] = namespace["function"]
    return function


def test_every_hook_of_the_contract_is_collected_or_called() -> None:
    assert set(signatures()) == {*CONTRIBUTED, *CALLED, "opencode_cli"}
    assert set(CALLED) == set(RUNTIME_HOOKS)


@pytest.mark.parametrize("hook", sorted(CONTRIBUTED))
def test_a_contribution_hook_is_asked_once_with_all_it_may_name_and_its_answer_is_registered(hook: str) -> None:
    answer, slot, keys = CONTRIBUTED[hook]
    asked: list[tuple[Any, ...]] = []
    collected = Collected(admitted(**{hook: asks_for_everything(hook, answer, asked)}))
    assert slot is not None
    assert collected.keys(slot) == keys
    assert len(asked) == 1
    assert OPTIONS in asked[0]
    assert isinstance(asked[0][-1], Attachment)


@pytest.mark.parametrize("hook", sorted(CALLED))
async def test_a_runtime_hook_is_not_asked_when_collected_and_then_with_all_it_may_name(hook: str) -> None:
    asked: list[tuple[Any, ...]] = []
    collected = Collected(admitted(**{hook: asks_for_everything(hook, None, asked)}))
    assert (collected.keys(RUNTIME_HOOKS[hook]), asked) == (["plugin/acme"], [])
    await CALLED[hook](collected.view)
    assert len(asked) == 1
    assert len(asked[0]) == len(signatures()[hook])
    assert OPTIONS in asked[0]


def test_the_command_line_hook_is_asked_with_a_group_and_options() -> None:
    asked: list[tuple[Any, ...]] = []
    hooks = admitted(opencode_cli=asks_for_everything("opencode_cli", None, asked))
    group = Group()
    hooks.ask("opencode_cli", cli=group, options=OPTIONS)
    assert (asked, list(Collected(hooks).view)) == ([(group, OPTIONS)], [])


# What is taken


@pytest.mark.parametrize("hook", sorted(CONTRIBUTED))
def test_none_means_nothing(hook: str) -> None:
    assert list(Collected(admitted(**{hook: lambda: None})).view) == []


@pytest.mark.parametrize("hook", sorted(CONTRIBUTED))
def test_nothing_is_nothing(hook: str) -> None:
    empty = type(CONTRIBUTED[hook][0])()
    assert list(Collected(admitted(**{hook: lambda: empty})).view) == []


def test_a_generator_is_drained() -> None:
    def opencode_skills(location: Location) -> Iterator[Skill]:
        yield Skill(name="one", body="")
        yield Skill(name="two", body="")

    assert Collected(admitted(opencode_skills=opencode_skills)).keys(SKILLS) == ["one", "two"]


def test_sources_keep_the_order_in_which_they_were_returned() -> None:
    sources = [source(f"acme/{name}") for name in "cab"]
    collected = Collected(admitted(opencode_context_sources=lambda: sources))
    (contribution,) = collected.view.all(CONTEXT_SOURCES)
    assert contribution.value == tuple(sources)
    assert contribution.claims == ("acme/c", "acme/a", "acme/b")


@pytest.mark.behaviour("AT-09")
def test_what_the_plugin_does_to_its_mapping_later_has_no_effect_also_after_later_changes() -> None:
    record = {"a": TOOL}
    registry = Registry()
    scope = registry.open()
    part = scope.attach(Owner("acme"))
    hooks = admitted(opencode_tools=lambda: record)
    collect_location(hooks, part, location=LOCATION, options=OPTIONS)
    record["b"] = record.pop("a")
    seen = [[each.key for each in scope.read().all(TOOLS)]]
    scope.attach(Owner("zeta")).add_tool("c", TOOL)
    seen.append([each.key for each in scope.read().all(TOOLS)])
    scope.closed = True
    assert seen == [["a"], ["a", "c"]]


def test_a_plugin_of_a_project_offers_adapters_and_hears_events_in_its_location() -> None:
    hooks = admitted(opencode_provider_adapters=lambda: [Adapter()], opencode_event=lambda event: None)
    collected = Collected(hooks, confined=True)
    assert collected.keys(PROVIDER_ADAPTERS) == ["echo"]
    assert collected.view.all(RUNTIME_HOOKS["opencode_event"])[0].lifetime == "location"


def test_a_plugin_of_a_project_may_not_offer_storage() -> None:
    hooks = admitted(opencode_storage_backends=lambda: {"redis": open_store})
    error = Collected(hooks, confined=True).error
    assert isinstance(error, PluginContractError)
    assert "'opencode_storage_backends' of the plugin 'acme'" in error.problem
    assert "install the plugin" in error.remedy


# What is refused


def endless() -> Iterator[Skill]:
    return (Skill(name=f"s{number}", body="") for number in itertools.count())


class EndlessMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return TOOL

    def __iter__(self) -> Iterator[str]:
        return (f"t{number}" for number in itertools.count())

    def __len__(self) -> int:
        return 1


class BrokenMapping(EndlessMapping):
    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no keys today")


class NoStream:
    name = "mute"


class BrokenName:
    @property
    def name(self) -> str:
        raise RuntimeError("no name today")

    def stream(self, request: ProviderRequest) -> None: ...


def half_way(location: Location) -> Iterator[Skill]:
    yield Skill(name="one", body="")
    raise RuntimeError("half-way")


def exits(location: Location) -> Iterator[Skill]:
    yield Skill(name="one", body="")
    sys.exit(2)


async def coroutine() -> None: ...


@pytest.mark.parametrize(
    ("hook", "function", "problem", "remedy"),
    [
        pytest.param("opencode_skills", lambda: 7, "returned a 'int'", "Return or yield skills", id="non-iterable"),
        pytest.param("opencode_skills", lambda: "skill", "returned a 'str'", "Return or yield", id="text"),
        pytest.param("opencode_skills", lambda: b"skill", "returned a 'bytes'", "Return or yield", id="bytes"),
        pytest.param(
            "opencode_skills", lambda: Skill(name="one", body=""), "a 'Skill'", "Put it in a list", id="single skill"
        ),
        pytest.param(
            "opencode_context_sources",
            lambda: source("acme/one"),
            "returned a 'ContextSource'",
            "Put it in a list",
            id="single source",
        ),
        pytest.param(
            "opencode_provider_adapters", lambda: Adapter(), "'Adapter'", "Put it in a list", id="single adapter"
        ),
        pytest.param(
            "opencode_skills",
            lambda: {"one": Skill(name="one", body="")},
            "returned a 'dict'",
            "Return or yield skills",
            id="mapping for iterable",
        ),
        pytest.param(
            "opencode_tools", lambda: [TOOL], "returned a 'list'", "a mapping of names", id="list for mapping"
        ),
        pytest.param("opencode_tools", lambda: TOOL, "returned a 'Tool'", "a mapping of names to tools", id="one tool"),
        pytest.param("opencode_storage_backends", lambda: "sqlite", "'str'", "URL schemes to factories", id="scheme"),
        pytest.param(
            "opencode_skills",
            lambda: [Skill(name="one", body=""), Agent(name="two")],
            "a 'Agent' among its skills",
            "only skills",
            id="wrong item",
        ),
        pytest.param(
            "opencode_context_sources", lambda: ["acme/one"], "a 'str' among", "only context sources", id="text item"
        ),
        pytest.param(
            "opencode_tools", lambda: {"one": execute}, "a 'function' for the tool 'one'", "a Tool", id="function tool"
        ),
        pytest.param("opencode_tools", lambda: {"two words": TOOL}, "'two words' is not a", "Use a letter", id="name"),
        pytest.param(
            "opencode_tools", lambda: {7: TOOL}, "A value of type 'int' is not a", "Use a letter", id="number"
        ),
        pytest.param(
            "opencode_context_sources",
            lambda: [source("date")],
            "The key 'date' has no namespace",
            "Write it as 'your-plugin/date'",
            id="key without namespace",
        ),
        pytest.param("opencode_agents", lambda: [Agent(name="")], "'' is not a name", "Use at least", id="no name"),
        pytest.param(
            "opencode_context_sources",
            lambda: [source("acme/one"), source("acme/one")],
            "'acme/one' is contributed twice by 'acme'",
            "Rename one of them",
            id="source twice",
        ),
        pytest.param(
            "opencode_commands",
            lambda: [Command(name="one", template=""), Command(name="one", template="")],
            "The command 'one' is contributed twice by 'acme'",
            "Rename one of them",
            id="command twice",
        ),
        pytest.param(
            "opencode_provider_adapters",
            lambda: [Adapter(), Adapter()],
            "'echo' is contributed",
            "Rename",
            id="adapter",
        ),
        pytest.param(
            "opencode_storage_backends",
            lambda: {"redis": "redis://"},
            "a 'str' for the scheme 'redis'",
            "a factory",
            id="factory that is not callable",
        ),
        pytest.param(
            "opencode_provider_adapters",
            lambda: [NoStream()],
            "a 'NoStream' among its provider adapters",
            "with a 'name' and a 'stream' function",
            id="adapter without stream",
        ),
        pytest.param(
            "opencode_skills", endless, "returned more than 10,000 items", "that ends", id="endless generator"
        ),
        pytest.param(
            "opencode_tools", lambda: EndlessMapping(), "returned more than 10,000 items", "ends", id="endless mapping"
        ),
        pytest.param(
            "opencode_skills", lambda: coroutine(), "returned a coroutine", "a plain function", id="coroutine"
        ),
    ],
)
def test_what_is_not_as_promised_is_refused_and_nothing_is_registered(
    hook: str, function: Callable[..., Any], problem: str, remedy: str
) -> None:
    error = refusal(hook, function)
    assert problem in error.problem
    assert remedy in error.remedy


def boom() -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("hook", "function", "said"),
    [
        pytest.param("opencode_skills", boom, "RuntimeError: boom", id="raises"),
        pytest.param("opencode_skills", lambda: sys.exit(2), "SystemExit: 2", id="exits"),
        pytest.param("opencode_skills", half_way, "RuntimeError: half-way", id="raises half-way"),
        pytest.param("opencode_skills", exits, "SystemExit: 2", id="exits half-way"),
        pytest.param("opencode_tools", lambda: BrokenMapping(), "RuntimeError: no keys today", id="mapping raises"),
    ],
)
def test_a_hook_that_raises_is_refused_with_its_own_words_and_place(
    hook: str, function: Callable[..., Any], said: str
) -> None:
    error = refusal(hook, function)
    assert isinstance(error, PluginHookError)
    assert error.problem.endswith(f"raised: {said}.")
    assert error.place is not None
    assert error.place.file == __file__


def test_an_adapter_whose_name_cannot_be_read_is_refused() -> None:
    error = refusal("opencode_provider_adapters", lambda: [BrokenName()])
    assert "no name today" in error.problem or "'BrokenName' among" in error.problem  # it depends on the Python


def test_as_many_items_as_are_allowed_are_taken() -> None:
    skills = [Skill(name=f"s{number}", body="") for number in range(MOST_ITEMS)]
    hooks = admitted(opencode_skills=lambda: skills)
    assert len(Collected(hooks).view.all(SKILLS)) == MOST_ITEMS
