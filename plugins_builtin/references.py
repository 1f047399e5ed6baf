"""Tells the model which places, inside and outside the project, people named for it to look at. Reads none of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from plugin_sdk import (
    ABSENT,
    JSON,
    Absent,
    ContextSource,
    HostFacts,
    Location,
    PluginManifest,
    PluginScope,
    hookimpl,
)
from plugin_sdk.text import one_line

_HOW = "Look there when a task is about what one of them holds."


@attrs.frozen(kw_only=True)
class Reference:
    """A place that is worth knowing.

    Attributes:
        path: Where it is: relative to the Location, to the home with ``~/``, or absolute.
        description: What is there, and when to look; a reference without one is not told.
    """

    path: str
    description: str = ""


@attrs.frozen(kw_only=True)
class ReferencesOptions:
    """What people configure.

    Attributes:
        entries: The references, by name.
    """

    entries: Mapping[str, Reference] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Told:
    """One reference as the model is told of it."""

    name: str
    path: str
    description: str


opencode_plugin = PluginManifest(
    options=ReferencesOptions,
    keys={"references": "entries"},
    description="Tells the model of places that are worth knowing.",
)


@hookimpl
def opencode_context_sources(
    location: Location, options: ReferencesOptions, scope: PluginScope
) -> list[ContextSource[Any]]:
    """Contributes the references that have a description, which hold for as long as the Location is open."""
    told = _told(options.entries, location, scope.host)

    async def load() -> tuple[Told, ...] | Absent:
        return told or ABSENT

    return [
        ContextSource(
            key="core/references",
            load=load,
            baseline=lambda told: _list(f"These places are worth knowing. {_HOW}", told),
            update=lambda _before, told: _list(
                f"The places worth knowing have changed; these are all of them. {_HOW}", told
            ),
            removed=lambda _told: "The places that were listed as worth knowing no longer apply.",
            encode=lambda told: [attrs.asdict(each) for each in told],
            decode=_decoded,
        )
    ]


def _told(entries: Mapping[str, Reference], location: Location, host: HostFacts) -> tuple[Told, ...]:
    return tuple(
        Told(name=name, path=_resolved(entry.path, location, host), description=one_line(entry.description))
        for name, entry in sorted(entries.items())
        if one_line(entry.description)
    )


def _resolved(path: str, location: Location, host: HostFacts) -> str:
    return os.path.normpath(host.located(path, location.directory))


def _list(before: str, told: Iterable[Told]) -> str:
    lines = (f"- {one_line(each.name)} ({one_line(each.path)}): {each.description}" for each in told)
    return "\n".join([before, *lines])


def _decoded(stored: JSON) -> tuple[Told, ...]:
    if not isinstance(stored, list):
        raise TypeError("what was told of references is not a list")
    return tuple(Told(**each) for each in stored)
