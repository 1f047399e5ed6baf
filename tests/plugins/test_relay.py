"""The relay: a plugin whose hooks do not follow the contract is refused, with words that say what to change."""

import functools
import gc
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

import attrs
import pluggy
import pytest

from opencode_core import hookspecs
from opencode_core.errors import PluginApiError, PluginContractError, PluginHookError
from opencode_core.hookspecs import HOOK_API, hookimpl
from opencode_core.model.plugin import PluginManifest
from opencode_core.plugins.relay import MAY_BE_ASYNC, MAY_YIELD, Relay, signatures


def plugin(**attributes: Any) -> ModuleType:
    """A module with these attributes; functions are marked as hooks unless they are marked already."""
    module = ModuleType("acme_plugin")
    for name, value in attributes.items():
        is_plain = inspect.isfunction(value) and not hasattr(value, "opencode_impl")
        setattr(module, name, hookimpl(fresh(value)) if is_plain else value)
    return module


def fresh(function: Any) -> Any:
    """A copy of a function, because marking one marks it for every test."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def refusal(acme: object) -> PluginContractError:
    """Admits what must be refused, and shows that nothing of it was registered."""
    relay = Relay()
    with pytest.raises(PluginContractError) as caught:
        relay.admit(acme, name="acme")
    assert list(relay._manager.list_name_plugin()) == []
    assert caught.value.plugin == "acme"
    assert caught.value.remedy
    return caught.value


# What is refused


def only_keyword(location, *, options): ...


def positional(*args): ...


def keywords(location, **kwargs): ...


def defaulted(location=None): ...


def misnamed(locaton): ...


def invented(weather): ...


def method(self, location): ...


async def asynchronous(location): ...


def more_tools(location): ...


async def async_generator(location):
    yield


@pytest.mark.parametrize(
    ("function", "problem", "remedy"),
    [
        pytest.param(
            misnamed, "takes 'locaton', which is not an argument of it", "Did you mean 'location'?", id="typo"
        ),
        pytest.param(invented, "takes 'weather'", "It may name: location, options, scope.", id="unknown argument"),
        pytest.param(method, "takes 'self'", "Hand over an object, not its class.", id="method of a class"),
        pytest.param(only_keyword, "takes 'options' by keyword only", "Remove the '*' before it.", id="keyword only"),
        pytest.param(positional, "takes '*args', which is never filled", "Name the arguments it needs.", id="*args"),
        pytest.param(keywords, "takes '**kwargs', which is never filled", "Name the arguments", id="**kwargs"),
        pytest.param(defaulted, "gives 'location' a default", "Write 'location' without one.", id="default"),
        pytest.param(asynchronous, "is async", "Make it a plain function", id="async"),
        pytest.param(async_generator, "is an async generator", "Return values", id="async generator"),
    ],
)
def test_a_hook_of_the_wrong_form_is_refused(function: Callable[..., Any], problem: str, remedy: str) -> None:
    error = refusal(plugin(opencode_tools=function))
    assert error.problem.startswith("The hook 'opencode_tools' of the plugin 'acme' ")
    assert problem in error.problem
    assert remedy in error.remedy
    assert error.hook == "opencode_tools"
    assert error.place is not None
    assert (error.place.file, error.place.line) == (__file__, function.__code__.co_firstlineno)


@pytest.mark.parametrize(
    ("option", "problem", "remedy"),
    [
        ("wrapper", "is a wrapper", "Write a plain hook"),
        ("hookwrapper", "is a wrapper", "Write a plain hook"),
        ("tryfirst", "asks for a place in the order", "Leave it out"),
        ("trylast", "asks for a place in the order", "Leave it out"),
    ],
)
def test_a_hook_that_asks_pluggy_for_more_is_refused(option: str, problem: str, remedy: str) -> None:
    def opencode_tools(location) -> Iterator[None]:
        yield

    marking: Any = functools.partial(hookimpl, **{option: True})
    marked = marking(opencode_tools)
    error = refusal(plugin(opencode_tools=marked))
    assert (error.hook, problem in error.problem, remedy in error.remedy) == ("opencode_tools", True, True)


def test_an_unknown_hook_is_refused_with_the_name_that_was_probably_meant() -> None:
    error = refusal(plugin(opencode_tool=lambda location: None))
    assert str(error) == (
        "The hook 'opencode_tool' of the plugin 'acme' does not exist. Did you mean 'opencode_tools'?"
    )


def test_a_hook_like_no_other_is_refused_with_where_to_look() -> None:
    assert "docs/reference/hooks.md" in refusal(plugin(something_else=lambda: None)).remedy


def test_one_bad_hook_keeps_the_good_ones_out_too() -> None:
    refusal(plugin(opencode_skills=lambda location: [], opencode_tools=misnamed))


@pytest.mark.parametrize("hook", sorted(set(signatures()) - MAY_YIELD))
def test_a_generator_is_refused_where_nothing_would_iterate_it(hook: str) -> None:
    def generator() -> Iterator[None]:
        yield

    assert "is a generator, so nothing in it would run" in refusal(plugin(**{hook: generator})).problem


@pytest.mark.parametrize("hook", sorted(MAY_BE_ASYNC))
def test_an_async_generator_is_refused_where_async_functions_are_fine(hook: str) -> None:
    async def generator():
        yield

    assert "is an async generator" in refusal(plugin(**{hook: generator})).problem


def test_a_hook_that_is_implemented_twice_is_refused() -> None:
    other = hookimpl(specname="opencode_tools")(fresh(more_tools))
    error = refusal(plugin(opencode_tools=lambda location: None, more_tools=other))
    assert "implements the hook 'opencode_tools' twice" in error.problem
    assert error.hook == "opencode_tools"


def test_a_manifest_of_the_wrong_type_is_refused() -> None:
    error = refusal(plugin(opencode_plugin={"api": 1}))
    assert str(error) == (
        "The attribute 'opencode_plugin' of the plugin 'acme' is a 'dict'. Make it a plugin_sdk.PluginManifest."
    )


def test_a_plugin_for_a_newer_hook_api_is_refused_with_the_command_that_fixes_it() -> None:
    manifest = PluginManifest(api=HOOK_API + 1)
    with pytest.raises(PluginApiError, match=f"needs hook API {HOOK_API + 1}.*{HOOK_API}") as caught:
        Relay().admit(plugin(opencode_plugin=manifest, opencode_of_tomorrow=lambda: None), name="acme")
    assert "pip install --upgrade opencode-core" in str(caught.value)


@pytest.mark.parametrize("options", [dict, "Options"], ids=["class", "text"])
def test_options_that_are_not_an_attrs_class_are_refused(options: Any) -> None:
    error = refusal(plugin(opencode_plugin=PluginManifest(options=options)))
    assert "is not an attrs class" in error.problem
    assert "attrs.frozen" in error.remedy


class InTheWay:
    """An object that cannot be looked at."""

    @property
    def opencode_plugin(self) -> PluginManifest:
        raise RuntimeError("not now")


class Exits:
    @property
    def opencode_plugin(self) -> PluginManifest:
        sys.exit(1)


class Unlisted:
    def __dir__(self) -> list[str]:
        raise RuntimeError("not now")


@pytest.mark.parametrize("acme", [InTheWay(), Exits(), Unlisted()], ids=lambda each: type(each).__name__)
def test_an_object_that_cannot_be_looked_at_is_refused(acme: object) -> None:
    error = refusal(acme)
    assert error.problem.startswith("The plugin 'acme' cannot be searched for hooks: ")


@attrs.frozen
class Equal:
    """Two of these are equal, and pluggy cannot tell them apart."""

    @hookimpl
    def opencode_skills(self, location):
        return []


@pytest.mark.parametrize("same", [True, False], ids=["one object twice", "two equal objects"])
def test_a_plugin_that_is_not_distinct_is_refused(same: bool) -> None:
    relay, first = Relay(), Equal()
    relay.admit(first, name="first")
    with pytest.raises(PluginContractError, match=r"'second' is, or is equal to.*Hand over each object once"):
        relay.admit(first if same else Equal(), name="second")


# What is admitted


def test_a_hook_may_leave_out_arguments_and_have_them_in_any_order() -> None:
    hooks = Relay().admit(plugin(opencode_tools=lambda options, location: (options, location)), name="acme")
    assert hooks.ask("opencode_tools", location=1, options=2, scope=3) == (2, 1)


def test_an_object_with_methods_is_a_plugin() -> None:
    class Acme:
        @hookimpl
        def opencode_tools(self, location):
            return location

        @staticmethod
        @hookimpl
        def opencode_skills(location):
            return location

    hooks = Relay().admit(Acme(), name="acme")
    assert [hooks.ask(hook, location=1) for hook in hooks.names] == [1, 1]


def test_a_hook_may_have_another_name_with_specname() -> None:
    marked = hookimpl(specname="opencode_tools")(lambda location: "tools")
    hooks = Relay().admit(plugin(my_tools=marked), name="acme")
    assert (hooks.names, hooks.ask("opencode_tools", location=1)) == (("opencode_tools",), "tools")


def test_a_wrong_argument_of_a_renamed_hook_is_refused_under_the_hooks_own_name() -> None:
    assert refusal(plugin(my_tools=hookimpl(specname="opencode_tools")(fresh(misnamed)))).hook == "opencode_tools"


def test_an_optional_hook_that_this_kernel_does_not_have_is_left_alone() -> None:
    marked = hookimpl(optionalhook=True)(lambda anything: None)
    hooks = Relay().admit(plugin(opencode_of_tomorrow=marked, opencode_skills=lambda location: []), name="acme")
    assert hooks.names == ("opencode_skills",)


def test_an_optional_hook_that_this_kernel_has_is_checked_all_the_same() -> None:
    assert "locaton" in refusal(plugin(opencode_tools=hookimpl(optionalhook=True)(fresh(misnamed)))).problem


def test_a_function_with_a_hooks_name_that_is_not_marked_is_noticed() -> None:
    acme = plugin(opencode_skills=lambda location: [])
    acme.opencode_tools = fresh(misnamed)  # type: ignore[attr-defined]
    hooks = Relay().admit(acme, name="acme")
    assert (hooks.unmarked, hooks.names) == (("opencode_tools",), ("opencode_skills",))


def test_a_mark_for_another_project_is_noticed_too() -> None:
    acme = plugin(opencode_skills=lambda location: [])
    acme.opencode_tools = pluggy.HookimplMarker("pytest")(fresh(misnamed))  # type: ignore[attr-defined]
    assert Relay().admit(acme, name="acme").unmarked == ("opencode_tools",)


def test_a_plugin_without_a_hook_is_refused() -> None:
    error = refusal(plugin(answer=42))
    assert (error.problem, error.remedy) == (
        "The plugin 'acme' implements no hook.",
        "Mark a function with @hookimpl.",
    )


def test_a_plugin_with_only_an_unmarked_hook_is_refused_and_the_function_named() -> None:
    acme = plugin()
    acme.opencode_tools = fresh(misnamed)  # type: ignore[attr-defined]
    error = refusal(acme)
    assert (error.problem, error.remedy) == (
        "The plugin 'acme' implements no hook.",
        "Mark 'opencode_tools' with @hookimpl.",
    )


class Lazy:
    """Reading these is running code, which looking for hooks must not do."""

    @property
    def broken(self) -> str:
        raise RuntimeError("read")

    @functools.cached_property
    def slow(self) -> str:
        raise RuntimeError("read")

    @hookimpl
    def opencode_skills(self, location):
        return []


def test_properties_are_not_read_when_hooks_are_looked_for() -> None:
    assert Relay().admit(Lazy(), name="acme").names == ("opencode_skills",)


def test_mocks_among_the_attributes_are_not_hooks() -> None:
    class Acme:
        client = mock.MagicMock()
        opencode_commands = mock.Mock()

        @hookimpl
        def opencode_skills(self, location):
            return []

    hooks = Relay().admit(Acme(), name="acme")
    assert (hooks.names, hooks.unmarked) == (("opencode_skills",), ("opencode_commands",))


def test_a_plugin_without_a_manifest_has_an_empty_one() -> None:
    assert Relay().admit(plugin(opencode_skills=lambda location: []), name="acme").manifest == PluginManifest()


@pytest.mark.parametrize("api", [0, HOOK_API])
def test_a_plugin_for_this_hook_api_or_an_older_one_is_admitted(api: int) -> None:
    manifest = PluginManifest(api=api)
    acme = plugin(opencode_plugin=manifest, opencode_skills=lambda location: [])
    assert Relay().admit(acme, name="acme").manifest is manifest


# Generations


def test_two_generations_of_a_plugin_are_asked_apart() -> None:
    relay = Relay()
    old = relay.admit(plugin(opencode_tools=lambda: "old"), name="acme")
    new = relay.admit(plugin(opencode_tools=lambda: "new"), name="acme")
    assert (old.ask("opencode_tools"), new.ask("opencode_tools")) == ("old", "new")


def test_a_dismissed_generation_is_forgotten_and_the_other_stays() -> None:
    relay = Relay()
    module = plugin(opencode_tools=lambda: "old")
    old, forgotten = relay.admit(module, name="acme"), weakref.ref(module)
    new = relay.admit(plugin(opencode_tools=lambda: "new"), name="acme")
    relay.dismiss(old)
    relay.dismiss(old)
    del module, old
    gc.collect()
    assert (forgotten(), new.ask("opencode_tools")) == (None, "new")


def test_what_was_refused_is_not_kept_alive() -> None:
    relay, module = Relay(), plugin(opencode_tools=misnamed)
    forgotten = weakref.ref(module)
    with pytest.raises(PluginContractError):
        relay.admit(module, name="acme")
    del module
    gc.collect()
    assert forgotten() is None


# Asking


@pytest.mark.parametrize("raises", [RuntimeError("boom"), SystemExit(3), RecursionError("deep")], ids=repr)
def test_what_a_hook_raises_is_known_to_be_its_plugins(raises: BaseException) -> None:
    def opencode_tools(location):
        raise raises

    hooks = Relay().admit(plugin(opencode_tools=opencode_tools), name="acme")
    with pytest.raises(PluginHookError, match=f"'opencode_tools' of the plugin 'acme' raised: {type(raises).__name__}"):
        hooks.ask("opencode_tools", location=1)


def test_an_interrupt_is_nobodys_fault() -> None:
    def opencode_tools():
        raise KeyboardInterrupt

    hooks = Relay().admit(plugin(opencode_tools=opencode_tools), name="acme")
    with pytest.raises(KeyboardInterrupt):
        hooks.ask("opencode_tools")


def test_asking_with_call_lets_what_is_raised_through() -> None:
    def opencode_event():
        raise LookupError

    hooks = Relay().admit(plugin(opencode_event=opencode_event), name="acme")
    with pytest.raises(LookupError):
        hooks.call("opencode_event")


# The contract itself


def test_every_hook_of_the_contract_is_known_with_its_arguments() -> None:
    marked = {name for name, value in vars(hookspecs).items() if hasattr(value, "opencode_spec")}
    assert marked == set(signatures())
    assert signatures()["opencode_tools"] == ("location", "options", "scope")


@pytest.mark.parametrize("hook", sorted(signatures()))
def test_what_the_contract_says_of_async_is_what_is_admitted(hook: str) -> None:
    async def asynchronous() -> None: ...

    says = "May be async." in (getattr(hookspecs, hook).__doc__ or "")
    assert says == (hook in MAY_BE_ASYNC)
    if says:
        Relay().admit(plugin(**{hook: asynchronous}), name="acme")
    else:
        assert "is async" in refusal(plugin(**{hook: asynchronous})).problem


@pytest.mark.parametrize("hook", sorted(signatures()))
def test_what_the_contract_says_of_iterables_is_what_may_yield(hook: str) -> None:
    promised = inspect.signature(getattr(hookspecs, hook)).return_annotation
    assert promised.startswith("Iterable[") == (hook in MAY_YIELD)
