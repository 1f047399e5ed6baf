"""Makes plugins that do as little as a plugin can: one context source and one tool each."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

import attrs

from plugin_sdk import ContextSource, Location, Tool, ToolCall, ToolOutput, hookimpl

SOURCE = '''
"""A plugin that does as little as a plugin can."""

from plugin_sdk import ContextSource, Tool, ToolCall, ToolOutput, hookimpl


@hookimpl
def opencode_context_sources():
    yield ContextSource(key="{name}/value", load=load, baseline=str, update=update)


@hookimpl
def opencode_tools():
    return {{"{name}": Tool(description="Does nothing.", execute=execute)}}


async def load() -> str:
    return "{name}"


def update(_before: str, now: str) -> str:
    return now


async def execute(_call: ToolCall) -> ToolOutput:
    return ToolOutput(text="{name}")
'''


@attrs.define(eq=False)
class TrivialPlugin:
    """What a host hands over."""

    name: str

    @hookimpl
    def opencode_context_sources(self, location: Location) -> list[ContextSource[str]]:
        """Offers one source."""
        return [ContextSource(key=f"{self.name}/value", load=self._load, baseline=str, update=_update)]

    @hookimpl
    def opencode_tools(self, location: Location) -> dict[str, Tool]:
        """Offers one tool."""
        return {self.name: Tool(description="Does nothing.", execute=self._execute)}

    async def _load(self) -> str:
        return self.name

    async def _execute(self, _call: ToolCall) -> ToolOutput:
        return ToolOutput(text=self.name)


def objects(count: int) -> dict[str, object]:
    """Returns that many plugins, by name."""
    return {name: TrivialPlugin(name) for name in _names("object", count)}


def files(folder: Path, count: int) -> list[Path]:
    """Writes that many plugins into a folder, one file each."""
    folder.mkdir(parents=True, exist_ok=True)
    return [write(folder / f"{name}.py") for name in _names("file", count)]


def write(path: Path) -> Path:
    """Writes one plugin, named as its file."""
    path.write_text(textwrap.dedent(SOURCE).lstrip().format(name=path.stem), encoding="utf-8")
    return path


def _names(kind: str, count: int) -> Iterable[str]:
    return (f"{kind}{number:04}" for number in range(count))


def _update(_before: str, now: str) -> str:
    return now
