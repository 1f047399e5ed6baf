"""Turns configured options into the attrs class that a plugin declares. Never repeats a value: it may be a secret."""

from __future__ import annotations

import difflib
from collections import abc
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

import attrs

from opencode_core.config import PluginSettings, added
from opencode_core.errors import PluginOptionsError
from opencode_core.model.json import JSON
from opencode_core.model.plugin import PluginManifest

Fault: TypeAlias = tuple[str, str]
"""What is wrong with an option, and what to do."""

_PLAIN = (bool, int, float, str)
_LISTS = (list, tuple, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Iterable)
_TABLES = (dict, abc.Mapping, abc.MutableMapping)


def configured_options(plugin: str, manifest: PluginManifest, settings: PluginSettings) -> Mapping[str, JSON]:
    """Returns what is configured for a plugin: under its name, and under the top-level keys that are its own."""
    named = settings.options.get(plugin, {})
    if not manifest.keys:
        return named
    owned = {option: settings.keys[key] for key, option in manifest.keys.items() if key in settings.keys}
    return {**owned, **{option: added(owned.get(option), value) for option, value in named.items()}}


def structure_options(plugin: str, manifest: PluginManifest, configured: Mapping[str, JSON]) -> Any:
    """Returns the plugin's options: an instance of its class, or an empty mapping when it declares none.

    Raises:
        PluginOptionsError: An option is unknown, missing, or of the wrong type.
    """
    if manifest.options is None:
        if configured:
            raise _wrong(plugin, [(f"takes no options, but '{min(configured)}' is configured", "Remove it.")])
        return {}
    try:
        if not configured and _all_default(manifest.options):
            return manifest.options()
        return _structure(plugin, manifest.options, configured)
    except PluginOptionsError:
        raise
    except (Exception, SystemExit) as error:
        raise _wrong(plugin, [_refusal(error)]) from None


def _all_default(kind: type) -> bool:
    return all(field.default is not attrs.NOTHING for field in attrs.fields(kind) if field.init)


def _structure(plugin: str, kind: type, configured: Mapping[str, JSON]) -> Any:
    from cattrs.errors import ClassValidationError

    attrs.resolve_types(kind)
    misshapen = list(_shape_faults(kind, configured, ""))
    if misshapen:
        raise _wrong(plugin, misshapen)
    try:
        # One converter each time: a shared one would keep the classes of old generations alive in its caches.
        return _converter().structure(configured, kind)
    except ClassValidationError as error:
        raise _wrong(plugin, list(_faults(error, kind))) from None


def _converter() -> Any:
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn
    from cattrs.strategies import configure_union_passthrough

    def table(kind: type) -> Any:
        return make_dict_structure_fn(
            kind,
            converter,
            _cattrs_forbid_extra_keys=True,
            _cattrs_use_alias=True,
            _cattrs_use_linecache=False,  # it would grow with every reload
        )

    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook_factory(attrs.has, table)
    for kind in _PLAIN:
        converter.register_structure_hook(kind, _strict)
    converter.register_structure_hook(Path, lambda value, _kind: Path(_strict(value, str)))
    configure_union_passthrough(bool | int | float | str | None, converter)
    return converter


def _strict(value: Any, kind: type) -> Any:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if (isinstance(value, bool) and kind is not bool) or not isinstance(value, accepted):
        raise TypeError(f"should be '{kind.__name__}', not '{type(value).__name__}'")
    return kind(value)


def _shape_faults(kind: Any, value: Any, path: str) -> Iterator[Fault]:
    """Finds texts where lists belong, and the like, which the converter would take apart."""
    if isinstance(value, bool) and _is_number(kind):
        yield f"has an option '{path}' that should be a number or a text, not 'bool'", "Correct its value."
    kind = _present(kind, value)
    origin = get_origin(kind) or kind
    members: Iterable[tuple[Any, Any, Any]] = ()
    if attrs.has(origin):
        fits, wanted = isinstance(value, Mapping), "a table"
        members = _fields(origin, value) if fits else ()
    elif origin in _LISTS:
        fits, wanted = isinstance(value, list | tuple), "a list"
        members = zip(range(len(value)), _element_kinds(kind), value, strict=False) if fits else ()
    elif origin in _TABLES:
        fits, wanted = isinstance(value, Mapping), "a table"
        members = ((name, (get_args(kind) or (Any, Any))[1], each) for name, each in value.items()) if fits else ()
    else:
        return
    if not fits:
        yield f"has an option '{path}' that should be {wanted}, not '{type(value).__name__}'", "Correct its value."
    for name, inner, each in members:
        yield from _shape_faults(inner, each, f"{path}.{name}" if path else str(name))


def _is_number(kind: Any) -> bool:
    """Whether a choice of types holds a number and no truth value, which Python would take for a number."""
    is_choice = get_origin(kind) in (Union, UnionType)
    return is_choice and bool not in get_args(kind) and not {int, float}.isdisjoint(get_args(kind))


def _present(kind: Any, value: Any) -> Any:
    """Returns the type that a value has to have, once it is clear whether it is there."""
    if get_origin(kind) is Annotated:
        return _present(get_args(kind)[0], value)
    if get_origin(kind) not in (Union, UnionType):
        return kind
    choices = [each for each in get_args(kind) if each is not NoneType]
    is_settled = len(choices) == 1 and value is not None
    return _present(choices[0], value) if is_settled else Any


def _fields(kind: type, value: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    attrs.resolve_types(kind)
    for field in attrs.fields(kind):
        name = field.alias or field.name
        if name in value:
            yield name, field.type or Any, value[name]


def _element_kinds(kind: Any) -> Iterable[Any]:
    arguments = get_args(kind) or (Any,)
    is_mixed = get_origin(kind) is tuple and arguments[-1] is not Ellipsis
    return arguments if is_mixed else repeat(arguments[0])


def _faults(error: Any, kind: type, path: str = "") -> Iterator[Fault]:
    with_notes, rest = error.group_exceptions()
    for each in rest:
        yield from _unnoted(each, kind, path)
    for each, note in with_notes:
        yield from _noted(each, note, path)


def _unnoted(error: Exception, kind: type, path: str) -> Iterator[Fault]:
    from cattrs.errors import ForbiddenExtraKeysError

    if not isinstance(error, ForbiddenExtraKeysError):
        yield _refusal(error, path.rstrip("."))
        return
    known = [field.alias or field.name for field in attrs.fields(kind)] if attrs.has(kind) else []
    for name in sorted(error.extra_fields):
        close = difflib.get_close_matches(name, known, n=1)
        listed = f"It has: {', '.join(known)}." if known else "Remove it."
        yield f"has no option '{path}{name}'", f"Did you mean '{close[0]}'?" if close else listed


def _noted(error: Exception, note: Any, path: str) -> Iterator[Fault]:
    from cattrs.errors import ClassValidationError, IterableValidationError

    name = f"{path}{note.name if hasattr(note, 'name') else note.index}"
    if isinstance(error, ClassValidationError | IterableValidationError):
        kind = _present(note.type, error)
        yield from _faults(error, kind if isinstance(kind, type) else object, f"{name}.")
    elif isinstance(error, KeyError):
        yield f"needs the option '{name}', which is not configured", f"Set '{name}'."
    elif isinstance(error, TypeError) and str(error).startswith("should be"):
        yield f"has an option '{name}' that {error}", "Correct its value."
    else:
        yield f"has an option '{name}' that does not fit its type", "Correct its value."


def _refusal(error: BaseException, path: str = "") -> Fault:
    """Says that the class itself refused, and never in its own words, which often repeat the value."""
    fields = [each.alias or each.name for each in error.args if isinstance(each, attrs.Attribute)]
    named = ".".join(part for part in (path, *fields[:1]) if part)
    subject = f"its option '{named}'" if named else "its options"
    return f"refused {subject} ({type(error).__name__})", "Check the value." if named else "Check their values."


def _wrong(plugin: str, faults: list[Fault]) -> PluginOptionsError:
    problems = ", and ".join(dict.fromkeys(problem for problem, _remedy in faults)) or "has options that do not fit"
    remedies = " ".join(dict.fromkeys(remedy for _problem, remedy in faults))
    return PluginOptionsError(
        f"The plugin '{plugin}' {problems}.", f"{remedies} Look under 'plugins.{plugin}'.".strip(), plugin=plugin
    )
