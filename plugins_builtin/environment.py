"""Tells the model where it works: directory, project, version control, platform."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from plugin_sdk import ContextSource, Location, PluginManifest, hookimpl
from plugin_sdk.text import shown

opencode_plugin = PluginManifest(description="Tells the model where it works.")


@hookimpl
def opencode_context_sources(location: Location) -> Iterator[ContextSource[dict[str, str]]]:
    """Contributes facts that hold for as long as the Location is open."""
    facts = {
        "Working directory": shown(str(location.directory)),
        "Workspace root folder": shown(str(location.root)),
        "Is directory a git repo": "yes" if location.is_git else "no",
        "Platform": sys.platform,
    }

    async def load() -> dict[str, str]:
        return facts

    yield ContextSource(
        key="core/environment",
        load=load,
        baseline=_render,
        update=lambda _before, now: f"The environment has changed.\n{_render(now)}",
    )


def _render(facts: dict[str, str]) -> str:
    lines = "\n".join(f"  {name}: {value}" for name, value in facts.items())
    return f"Here is some useful information about the environment you are running in:\n<env>\n{lines}\n</env>"
