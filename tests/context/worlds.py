"""A plugin that tells a world which tests change as they like, between turns."""

from collections.abc import Iterator
from typing import Any

import attrs

from opencode_core.model.context import ABSENT, ContextSource
from plugin_sdk import hookimpl
from tests.context.making import source


@attrs.define(eq=False)
class World:
    """What is so, by name; a name that is missing has nothing to tell.

    Attributes:
        things: What is so now.
        names: Every name that may ever be told, each as the source ``world/<name>``.
        changes: What is other about the sources of some names.
    """

    things: dict[str, Any]
    names: tuple[str, ...] = ("flag", "rules")
    changes: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    @hookimpl
    def opencode_context_sources(self) -> Iterator[ContextSource[Any]]:
        for name in self.names:
            yield source(f"world/{name}", self._loader(name), **self._fields(name))

    def _loader(self, name: str) -> Any:
        async def load() -> Any:
            thing = self.things.get(name, ABSENT)
            if isinstance(thing, Exception):
                raise thing
            return thing

        return load

    def _fields(self, name: str) -> dict[str, Any]:
        return {
            "baseline": lambda thing: f"The {name} is {thing}.",
            "update": lambda _before, thing: f"The {name} is now {thing}.",
            "removed": lambda _thing: f"There is no {name} any more.",
            **self.changes.get(name, {}),
        }
