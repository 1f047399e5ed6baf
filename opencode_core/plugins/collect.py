"""Collects what a plugin contributes when a scope opens, and refuses what is not of the promised kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from opencode_core.errors import DuplicateKeyError, InvalidKeyError, PluginContractError
from opencode_core.model.agent import Agent
from opencode_core.model.command import Command
from opencode_core.model.context import ContextSource
from opencode_core.model.keys import check_entry_name, check_source_key, check_tool_name
from opencode_core.model.location import Location
from opencode_core.model.skill import Skill, SkillSource
from opencode_core.model.tool import Tool
from opencode_core.plugins.diagnostics import hook_error
from opencode_core.plugins.relay import Hooks
from opencode_core.plugins.scope import Attachment, Slot
from opencode_core.plugins.slots import (
    AGENTS,
    COMMANDS,
    CONTEXT_SOURCES,
    PROVIDER_ADAPTERS,
    RUNTIME_HOOKS,
    SKILL_SOURCES,
    SKILLS,
    STORAGE_BACKENDS,
    TOOLS,
    BoundHook,
    RememberedSkills,
)
from opencode_core.ports.provider import ProviderAdapter

T = TypeVar("T")

MOST_ITEMS = 10_000
"""More than this from one hook is a generator that never ends."""


def collect_host(hooks: Hooks, attachment: Attachment, *, options: Any) -> None:
    """Asks for what a plugin offers to the whole host.

    Raises:
        PluginError: A hook raised, or returned something else than it promised.
    """
    _storage_backends(hooks, attachment, options)
    collect_provider_adapters(hooks, attachment, options=options)
    _bind(hooks, attachment, options, ["opencode_event"])


def collect_provider_adapters(hooks: Hooks, attachment: Attachment, *, options: Any) -> None:
    """Asks for provider adapters.

    Raises:
        PluginError: The hook raised, or returned something else than it promised.
    """
    hook = "opencode_provider_adapters"
    adapters = _items(hooks, hook, ProviderAdapter, "provider adapters", options=options, scope=attachment)
    named = _drain(hooks, hook, ((adapter.name, adapter) for adapter in adapters))
    _register(hooks, hook, attachment, PROVIDER_ADAPTERS, named)


def collect_location(
    hooks: Hooks, attachment: Attachment, *, location: Location, options: Any, confined: bool = False
) -> None:
    """Asks for what a plugin contributes to one Location.

    A plugin that is confined to a project offers its provider adapters and hears events here, not in the host.

    Raises:
        PluginError: A hook raised, or returned something else than it promised.
    """
    if confined:
        _refuse_storage(hooks)
        collect_provider_adapters(hooks, attachment, options=options)
        _bind(hooks, attachment, options, ["opencode_event"])
    offered = {"location": location, "options": options, "scope": attachment}
    _context_sources(hooks, attachment, offered)
    _tools(hooks, attachment, offered)
    _skills(hooks, attachment, offered)
    for hook, kind, slot in (
        ("opencode_agents", Agent, AGENTS),
        ("opencode_commands", Command, COMMANDS),
    ):
        _named(hooks, hook, attachment, kind, slot, offered)
    _bind(hooks, attachment, options, [name for name in RUNTIME_HOOKS if name != "opencode_event"])


def _storage_backends(hooks: Hooks, attachment: Attachment, options: Any) -> None:
    hook = "opencode_storage_backends"
    backends = _mapping(hooks, hook, "URL schemes to factories", options=options, scope=attachment)
    for scheme, factory in backends.items():
        if not callable(factory):
            raise _wrong(hooks, hook, f"a '{type(factory).__name__}' for the scheme '{scheme}'", "a factory")
    _register(hooks, hook, attachment, STORAGE_BACKENDS, list(backends.items()))


def _refuse_storage(hooks: Hooks) -> None:
    if hooks.implements("opencode_storage_backends"):
        raise PluginContractError(
            f"The hook 'opencode_storage_backends' of the plugin '{hooks.plugin}' is not for plugins of a project.",
            "Storage is chosen before a project is open: install the plugin, or name it in the global configuration.",
            plugin=hooks.plugin,
            hook="opencode_storage_backends",
            place=hooks.place("opencode_storage_backends"),
        )


def _context_sources(hooks: Hooks, attachment: Attachment, offered: Mapping[str, Any]) -> None:
    hook = "opencode_context_sources"
    sources = _items(hooks, hook, ContextSource, "context sources", **offered)
    if sources:
        keys = tuple(source.key for source in sources)
        _check_keys(hooks, hook, keys, CONTEXT_SOURCES, check_source_key)
        attachment.add(CONTEXT_SOURCES, attachment.owner.key, tuple(sources), claims=keys)


def _tools(hooks: Hooks, attachment: Attachment, offered: Mapping[str, Any]) -> None:
    hook = "opencode_tools"
    tools = _mapping(hooks, hook, "names to tools", **offered)
    for name, tool in tools.items():
        if not isinstance(tool, Tool):
            raise _wrong(hooks, hook, f"a '{type(tool).__name__}' for the tool '{name}'", "a Tool")
    _register(hooks, hook, attachment, TOOLS, list(tools.items()), check=check_tool_name)


def _skills(hooks: Hooks, attachment: Attachment, offered: Mapping[str, Any]) -> None:
    hook = "opencode_skills"
    items = _items(hooks, hook, (Skill, SkillSource), "skills", **offered)
    _register(hooks, hook, attachment, SKILLS, [(each.name, each) for each in items if isinstance(each, Skill)])
    sources = [each for each in items if isinstance(each, SkillSource)]
    named = [(f"{attachment.owner.key}/{each.key}", RememberedSkills(each)) for each in sources]
    _register(hooks, hook, attachment, SKILL_SOURCES, named)


def _named(
    hooks: Hooks,
    hook: str,
    attachment: Attachment,
    kind: type[Any],
    slot: Slot[Any],
    offered: Mapping[str, Any],
) -> None:
    items = _items(hooks, hook, kind, slot.name, **offered)
    _register(hooks, hook, attachment, slot, [(item.name, item) for item in items])


def _bind(hooks: Hooks, attachment: Attachment, options: Any, names: Iterable[str]) -> None:
    for name in names:
        if hooks.implements(name):
            attachment.add(RUNTIME_HOOKS[name], attachment.owner.key, BoundHook(hooks, name, options))


def _register(
    hooks: Hooks,
    hook: str,
    attachment: Attachment,
    slot: Slot[T],
    items: list[tuple[str, T]],
    *,
    check: Callable[[object], str] = check_entry_name,
) -> None:
    _check_keys(hooks, hook, [key for key, _value in items], slot, check)
    for key, value in items:
        attachment.add(slot, key, value)


def _check_keys(hooks: Hooks, hook: str, keys: Iterable[str], slot: Slot[Any], check: Callable[[object], str]) -> None:
    """Checks every key before anything is registered under one."""
    seen: set[str] = set()
    try:
        for key in keys:
            if check(key) in seen:
                raise DuplicateKeyError(key, (hooks.plugin, hooks.plugin), what=slot.noun)
            seen.add(key)
    except (InvalidKeyError, DuplicateKeyError) as error:
        problem = f"The hook '{hook}' of the plugin '{hooks.plugin}' was refused: {error.problem}"
        raise PluginContractError(
            problem, error.remedy, plugin=hooks.plugin, hook=hook, place=hooks.place(hook)
        ) from error


def _items(hooks: Hooks, hook: str, kind: type[Any] | tuple[type[Any], ...], noun: str, **offered: Any) -> list[Any]:
    answer = _answer(hooks, hook, **offered)
    if answer is None:
        return []
    if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
        hint = "Put it in a list." if _is(answer, kind) else f"Return or yield {noun}."
        raise _wrong(hooks, hook, f"a '{type(answer).__name__}'", f"an iterable of {noun}", hint)
    items = _drain(hooks, hook, answer)
    for item in items:
        if not _is(item, kind):
            raise _wrong(hooks, hook, f"a '{type(item).__name__}' among its {noun}", f"only {noun}{_shape(kind)}")
    return items


def _is(item: object, kind: type[Any] | tuple[type[Any], ...]) -> bool:
    try:
        return isinstance(item, kind)
    except Exception:  # reading the attributes that a Protocol asks for may run a property
        return False


def _shape(kind: object) -> str:
    return ", with a 'name' and a 'stream' function" if kind is ProviderAdapter else ""


def _mapping(hooks: Hooks, hook: str, content: str, **offered: Any) -> dict[str, Any]:
    answer = _answer(hooks, hook, **offered)
    if answer is None:
        return {}
    if not isinstance(answer, Mapping):
        raise _wrong(hooks, hook, f"a '{type(answer).__name__}'", f"a mapping of {content}")
    return dict(_drain(hooks, hook, _pairs(answer)))


def _pairs(mapping: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    yield from mapping.items()


def _answer(hooks: Hooks, hook: str, **offered: Any) -> Any:
    if not hooks.implements(hook):
        return None
    answer = hooks.ask(hook, **offered)
    if inspect.iscoroutine(answer):
        answer.close()
        raise _wrong(hooks, hook, "a coroutine", "", "Make it a plain function, and do async work inside the values.")
    return answer


def _drain(hooks: Hooks, hook: str, answer: Iterable[Any]) -> list[Any]:
    try:
        items = list(islice(answer, MOST_ITEMS + 1))
    except (Exception, SystemExit) as error:
        raise hook_error(hooks.plugin, hook, error) from error
    if len(items) > MOST_ITEMS:
        raise _wrong(hooks, hook, f"more than {MOST_ITEMS:,} items", "an iterable that ends")
    return items


def _wrong(hooks: Hooks, hook: str, got: str, wanted: str, hint: str = "") -> PluginContractError:
    return PluginContractError(
        f"The hook '{hook}' of the plugin '{hooks.plugin}' returned {got}.",
        hint or f"Return {wanted}, or None for nothing.",
        plugin=hooks.plugin,
        hook=hook,
        place=hooks.place(hook),
    )
