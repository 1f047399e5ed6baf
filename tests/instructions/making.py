"""What the tests of instructions have in common: a person, a project, and what a model would be told there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from plugin_sdk import UNAVAILABLE, Boundary, ContextSource, Location, PluginManifest, PluginScope, hookimpl
from plugin_sdk.testing import LoadedPlugin, load_plugin
from plugins_builtin import instructions
from plugins_builtin.instructions.options import InstructionsOptions
from plugins_builtin.instructions.reading import Reader
from plugins_builtin.instructions.service import InstructionService

KEY = "core/instructions"


@attrs.frozen
class Person:
    """Where somebody keeps things."""

    home: Path
    config: Path
    project: Path

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file below the home, and return it."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file


@attrs.frozen(eq=False)
class Told:
    """An open Location with the instructions plugin in it."""

    plugin: LoadedPlugin

    @property
    def warnings(self) -> list[str]:
        """What people were told so far."""
        return [str(each.problem) for each in self.plugin.status.diagnostics]

    async def source(self) -> ContextSource[Any]:
        return (await self.plugin.sources())[KEY]

    async def texts(self, *visited: Path, location: Location | None = None) -> dict[str, str] | None:
        """What applies, by where it comes from, in order; empty when nothing does, None when that is unavailable."""
        value = await self.value(*visited, location=location)
        if value is UNAVAILABLE:
            return None
        return {each.origin: each.text for each in getattr(value, "parts", ())}

    async def value(self, *visited: Path, location: Location | None = None) -> Any:
        where = location or self.plugin.host.location.location
        return await (await self.source()).load(Boundary(location=where, visited=visited))


@asynccontextmanager
async def telling(directory: Path | str, *, reader: Reader | None = None, **options: Any) -> AsyncIterator[Told]:
    """Open a host with nothing but the plugin, as the kit for authors does."""
    plugin: object = instructions if reader is None else Instead(reader)
    async with load_plugin(plugin, directory=directory, options=options, name="instructions") as loaded:
        yield Told(loaded)


@attrs.frozen(eq=False)
class Instead:
    """The plugin, with another reader."""

    reader: Reader
    opencode_plugin = PluginManifest(options=InstructionsOptions)

    @hookimpl
    def opencode_context_sources(self, options: InstructionsOptions, scope: PluginScope) -> list[ContextSource[Any]]:
        return [InstructionService.of(options, scope, reader=self.reader).source()]


def before_opening(path: Path, change: Callable[[], object]) -> Reader:
    """A reader that sees something happen, once, between the scan and the opening of a file."""
    left = [change]

    def open_file(opened: str, flags: int) -> int:
        if opened == str(path) and left:
            left.pop()()
        return os.open(opened, flags)

    return Reader(limit=1_000_000, open_file=open_file)


def while_reading(*changes: Callable[[], object]) -> Reader:
    """A reader that sees something happen each time when it has read the beginning of a file."""
    left = list(changes)

    def read_bytes(descriptor: int, size: int) -> bytes:
        is_beginning = os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        content = os.read(descriptor, size)
        if is_beginning and left:
            left.pop(0)()
        return content

    return Reader(limit=1_000_000, read_bytes=read_bytes)
