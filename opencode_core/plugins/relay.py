"""Admits plugins whose hooks follow the contract, and asks one of them at a time. Nobody else touches pluggy."""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pluggy

from opencode_core import hookspecs
from opencode_core.errors import Place, PluginApiError, PluginContractError, PluginError
from opencode_core.model.plugin import PluginManifest
from opencode_core.plugins.diagnostics import hook_error, place_of, words

MANIFEST = "opencode_plugin"

MAY_BE_ASYNC = frozenset(
    {
        "opencode_request",
        "opencode_tool_before",
        "opencode_tool_after",
        "opencode_permission",
        "opencode_text_complete",
        "opencode_compaction",
        "opencode_event",
    }
)

MAY_YIELD = frozenset(
    {
        "opencode_provider_adapters",
        "opencode_context_sources",
        "opencode_skills",
        "opencode_agents",
        "opencode_commands",
    }
)


@attrs.frozen(eq=False)
class Hooks:
    """One admitted generation of a plugin: its hooks, by name, and what it says about itself."""

    plugin: str
    manifest: PluginManifest
    unmarked: tuple[str, ...]
    _ticket: str
    _implementations: Mapping[str, pluggy.HookImpl]

    @property
    def names(self) -> tuple[str, ...]:
        """The hooks it implements, sorted."""
        return tuple(sorted(self._implementations))

    def implements(self, hook: str) -> bool:
        """Whether it has this hook."""
        return hook in self._implementations

    def ask(self, hook: str, **offered: Any) -> Any:
        """Calls one hook with the arguments it names, and returns what it returns.

        Raises:
            PluginHookError: The hook raised.
        """
        implementation = self._implementations[hook]
        try:
            return implementation.function(*[offered[name] for name in implementation.argnames])
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # asking is synchronous, so even a cancellation is the plugin's own doing
            raise hook_error(self.plugin, hook, error) from error

    def call(self, hook: str, **offered: Any) -> Any:
        """Calls one hook and lets what it raises through, for callers that tell its exceptions apart."""
        implementation = self._implementations[hook]
        return implementation.function(*[offered[name] for name in implementation.argnames])

    def place(self, hook: str) -> Place | None:
        """Where the hook is written."""
        return _place(self._implementations[hook].function)


@attrs.define(eq=False, repr=False)
class Relay:
    """The plugins that one host has admitted."""

    _manager: _Manager = attrs.field(factory=lambda: _manager())
    _tickets: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def admit(self, plugin: object, *, name: str) -> Hooks:
        """Checks a plugin against the contract and registers it, beside any other generation of it.

        Raises:
            PluginApiError: It needs a newer hook API than this kernel has.
            PluginContractError: A hook is unknown, names wrong arguments, or is of the wrong kind.
        """
        try:
            return self._admit(plugin, name)
        except PluginError:
            raise
        except (Exception, SystemExit) as error:  # the plugin is any object, and may be in the way of being looked at
            raise _unreadable(name, error) from error

    def dismiss(self, hooks: Hooks) -> None:
        """Forgets a generation; twice is harmless."""
        if self._manager.has_plugin(hooks._ticket):
            self._manager.unregister(name=hooks._ticket)

    def _admit(self, plugin: object, name: str) -> Hooks:
        manifest = _manifest(plugin, name)
        marked, unmarked = _marked_hooks(self._manager, plugin)
        if not marked:
            raise _without_hooks(name, unmarked)
        for each in marked:
            _check(name, each.hook, each.function, each.options)
        _refuse_twice(name, marked)
        ticket = f"{name}#{next(self._tickets)}"
        try:
            self._manager.register_marked(plugin, ticket, {each.attribute: each.options for each in marked})
        except ValueError as error:
            raise _not_itself(name) from error
        return Hooks(name, manifest, unmarked, ticket, self._implementations(plugin))

    def _implementations(self, plugin: object) -> dict[str, pluggy.HookImpl]:
        return {
            caller.name: implementation
            for caller in self._manager.get_hookcallers(plugin) or ()
            if caller.spec is not None
            for implementation in caller.get_hookimpls()
            if implementation.plugin is plugin
        }


class _Manager(pluggy.PluginManager):
    """Looks for hooks without running anything: reading a property, as some releases of pluggy do, is running code."""

    _known: Mapping[str, Any] | None = None

    def register_marked(self, plugin: object, name: str, known: Mapping[str, Any]) -> None:
        """Registers a plugin whose marks were read already: reading them is most of what registering costs."""
        self._known = known
        try:
            self.register(plugin, name=name)
        finally:
            self._known = None

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        if self._known is not None:
            return self._known.get(name)
        if inspect.ismodule(plugin):
            return super().parse_hookimpl_opts(plugin, name) if callable(vars(plugin).get(name)) else None
        if isinstance(inspect.getattr_static(plugin, name, None), property | functools.cached_property):
            return None
        return super().parse_hookimpl_opts(plugin, name)


@attrs.frozen(eq=False)
class _Marked:
    attribute: str
    hook: str
    function: Any
    options: Mapping[str, Any]


def _manager() -> _Manager:
    manager = _Manager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def _manifest(plugin: object, name: str) -> PluginManifest:
    manifest = getattr(plugin, MANIFEST, None)
    if manifest is None:
        return PluginManifest()
    if not isinstance(manifest, PluginManifest):
        raise PluginContractError(
            f"The attribute '{MANIFEST}' of the plugin '{name}' is a '{type(manifest).__name__}'.",
            "Make it a plugin_sdk.PluginManifest.",
            plugin=name,
        )
    if manifest.api > hookspecs.HOOK_API:
        raise PluginApiError(
            f"The plugin '{name}' needs hook API {manifest.api}, and this kernel has {hookspecs.HOOK_API}.",
            "Run 'pip install --upgrade opencode-core'.",
            plugin=name,
        )
    if manifest.options is not None and not attrs.has(manifest.options):
        raise PluginContractError(
            f"The options of the plugin '{name}' are declared by '{manifest.options!r}', which is not an attrs class.",
            "Decorate it with attrs.frozen.",
            plugin=name,
        )
    return manifest


def _marked_hooks(manager: pluggy.PluginManager, plugin: object) -> tuple[list[_Marked], tuple[str, ...]]:
    marked, unmarked = [], []
    for attribute in dir(plugin):
        if attribute.startswith("__"):
            continue
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is not None:
            hook = options.get("specname") or attribute
            marked.append(_Marked(attribute, hook, getattr(plugin, attribute), options))
        elif attribute in _SIGNATURES:
            unmarked.append(attribute)
    return marked, tuple(unmarked)


def _without_hooks(plugin: str, unmarked: tuple[str, ...]) -> PluginContractError:
    """Refuses what contributes nothing: a file that an editor has only just emptied must not replace the full one."""
    remedy = f"Mark '{unmarked[0]}' with @hookimpl." if unmarked else "Mark a function with @hookimpl."
    return PluginContractError(f"The plugin '{plugin}' implements no hook.", remedy, plugin=plugin)


def _refuse_twice(plugin: str, marked: list[_Marked]) -> None:
    seen: set[str] = set()
    for each in marked:
        if each.hook in seen:
            raise PluginContractError(
                f"The plugin '{plugin}' implements the hook '{each.hook}' twice, and only one would be asked.",
                "Join the two functions.",
                plugin=plugin,
                hook=each.hook,
                place=_place(each.function),
            )
        seen.add(each.hook)


def _unreadable(plugin: str, error: BaseException) -> PluginContractError:
    return PluginContractError(
        f"The plugin '{plugin}' cannot be searched for hooks: {words(error)[0]}",
        "Looking at a plugin and its attributes must not fail.",
        plugin=plugin,
        place=place_of(error),
    )


def _not_itself(plugin: str) -> PluginContractError:
    return PluginContractError(
        f"The plugin '{plugin}' is, or is equal to, a plugin that is here already.",
        "Hand over each object once, and give its class identity, as attrs.define(eq=False) does.",
        plugin=plugin,
    )


def _check(plugin: str, hook: str, function: Any, options: Mapping[str, Any]) -> None:
    for fault in _faults(hook, function, options):
        problem, remedy = fault
        raise PluginContractError(
            f"The hook '{hook}' of the plugin '{plugin}' {problem}.",
            remedy,
            plugin=plugin,
            hook=hook,
            place=_place(function),
        )


def _faults(hook: str, function: Any, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if hook not in _SIGNATURES:
        if not options.get("optionalhook"):
            yield "does not exist", _suggest(hook, _SIGNATURES, "See docs/reference/hooks.md for all hooks.")
        return
    if options.get("wrapper") or options.get("hookwrapper"):
        yield "is a wrapper", "Write a plain hook: each plugin is asked alone, so there is nothing to wrap."
    if options.get("tryfirst") or options.get("trylast"):
        yield (
            "asks for a place in the order with tryfirst or trylast",
            "Leave it out: the order is builtins first, then plugins by name.",
        )
    yield from _argument_faults(hook, function)
    yield from _kind_faults(hook, function)


def _argument_faults(hook: str, function: Any) -> Iterator[tuple[str, str]]:
    allowed = _SIGNATURES[hook]
    listed = f"It may name: {', '.join(allowed)}."
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            yield f"takes '{argument}', which is never filled", f"Name the arguments it needs. {listed}"
        elif argument.kind is argument.KEYWORD_ONLY:
            yield (
                f"takes '{argument.name}' by keyword only, which is never passed",
                "Remove the '*' before it.",
            )
        elif argument.name not in allowed:
            is_method = argument.name == "self"
            yield (
                f"takes '{argument.name}', which is not an argument of it",
                "Hand over an object, not its class." if is_method else _suggest(argument.name, allowed, listed),
            )
        elif argument.default is not argument.empty:
            yield (
                f"gives '{argument.name}' a default, so it is never passed",
                f"Write '{argument.name}' without one.",
            )


def _kind_faults(hook: str, function: Any) -> Iterator[tuple[str, str]]:
    if inspect.isasyncgenfunction(function):
        yield "is an async generator, which is never iterated", "Return values; the values may have async functions."
    if inspect.iscoroutinefunction(function) and hook not in MAY_BE_ASYNC:
        yield "is async", "Make it a plain function that returns values, and do async work inside the values."
    if inspect.isgeneratorfunction(function) and hook not in MAY_YIELD:
        yield "is a generator, so nothing in it would run", "Return what it promises, and leave 'yield' out."


def _suggest(word: str, known: Any, otherwise: str) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean '{close[0]}'?" if close else otherwise


def _place(function: Any) -> Place | None:
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code else None


def signatures() -> dict[str, tuple[str, ...]]:
    """Returns the argument names of every hook, in the order of the contract."""
    return {
        name: tuple(inspect.signature(function).parameters)
        for name, function in vars(hookspecs).items()
        if name.startswith("opencode_") and inspect.isfunction(function)
    }


_SIGNATURES = signatures()
