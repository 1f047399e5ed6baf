"""Turns configured options into the attrs class that a plugin declares. Never repeats a value: it may be a secret."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from opencode_core.errors import PluginOptionsError
from opencode_core.model.json import JSON
from opencode_core.model.plugin import PluginManifest

_PLAIN = (bool, int, float, str)


def structure_options(plugin: str, manifest: PluginManifest, configured: Mapping[str, JSON]) -> Any:
    """Returns the plugin's options: an instance of its class, or an empty mapping when it declares none.

    Raises:
        PluginOptionsError: An option is unknown, missing, or of the wrong type.
    """
    if manifest.options is None:
        if configured:
            raise _wrong(plugin, f"takes no options, but '{sorted(configured)[0]}' is configured", "Remove it.")
        return {}
    if not configured and _all_default(manifest.options):
        return manifest.options()
    return _structure(plugin, manifest.options, configured)


def _all_default(kind: type) -> bool:
    return all(field.default is not attrs.NOTHING for field in attrs.fields(kind) if field.init)


def _structure(plugin: str, kind: type, configured: Mapping[str, JSON]) -> Any:
    from cattrs.errors import ClassValidationError

    try:
        # One converter each time: a shared one would keep the classes of old generations alive in its caches.
        return _converter().structure(configured, kind)
    except ClassValidationError as error:
        problem, remedy = next(_faults(error, kind), ("has options that do not fit", "Check them."))
        raise _wrong(plugin, problem, remedy) from None
    except Exception as error:
        raise _wrong(plugin, f"refused its options ({type(error).__name__})", "Check their values.") from None


def _converter() -> Any:
    from cattrs import Converter

    converter = Converter(forbid_extra_keys=True)
    for kind in _PLAIN:
        converter.register_structure_hook(kind, _strict)
    converter.register_structure_hook(Path, lambda value, _kind: Path(_strict(value, str)))
    return converter


def _strict(value: Any, kind: type) -> Any:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if (isinstance(value, bool) and kind is not bool) or not isinstance(value, accepted):
        raise TypeError(f"should be '{kind.__name__}', not '{type(value).__name__}'")
    return kind(value)


def _faults(error: Any, kind: type, path: str = "") -> Iterator[tuple[str, str]]:
    from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    known = [field.alias or field.name for field in attrs.fields(kind)] if attrs.has(kind) else []
    with_notes, rest = error.group_exceptions()
    for each in rest:
        if isinstance(each, ForbiddenExtraKeysError):
            for name in sorted(each.extra_fields):
                close = difflib.get_close_matches(name, known, n=1)
                listed = f"It has: {', '.join(known)}." if known else ""
                yield f"has no option '{path}{name}'", f"Did you mean '{close[0]}'?" if close else listed
    for each, note in with_notes:
        name = f"{path}{getattr(note, 'name', None) or getattr(note, 'index', '')}"
        if isinstance(each, ClassValidationError):
            yield from _faults(each, note.type if isinstance(note.type, type) else object, f"{name}.")
        elif isinstance(each, IterableValidationError):
            yield from _faults(each, object, f"{name}.")
        elif isinstance(each, KeyError):
            yield f"needs the option '{name}', which is not configured", f"Set '{name}'."
        elif isinstance(each, TypeError) and str(each).startswith("should be"):
            yield f"has an option '{name}' that {each}", "Correct its value."
        else:
            yield f"has an option '{name}' that does not fit its type", "Correct its value."


def _wrong(plugin: str, problem: str, remedy: str) -> PluginOptionsError:
    where = f"plugins.{plugin}"
    return PluginOptionsError(f"The plugin '{plugin}' {problem}.", f"{remedy} Look under '{where}'.", plugin=plugin)
