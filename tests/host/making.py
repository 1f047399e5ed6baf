"""What the tests of hosts are made of: plugin files, hosts without the machine's own plugins, and calls of tools."""

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import importlib_metadata  # noqa: F401 -- it adds a finder to Python's, once
import pytest

from opencode_core.host import Host
from opencode_core.model.tool import ToolCall, ToolOutput
from opencode_core.plugins.place import Place
from opencode_core.plugins.project_code import ProjectCode
from opencode_core.plugins.trust import Changed, Unknown
from opencode_core.tools.registry import Completed, materialize
from plugin_sdk import Tool, hookimpl

PLUGINS = ".opencode/plugins"

HEAD = "from plugin_sdk import *\n"


def write(path: Path, text: str) -> Path:
    """Write a file, and the folders it is in; the text may be indented."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def tool_plugin(says: str, *, tool: str = "answer", extra: str = "") -> str:
    """Return the source of a plugin with one tool that says something."""
    return (
        HEAD
        + textwrap.dedent(extra)
        + textwrap.dedent(
            f"""
        async def execute(call):
            return ToolOutput(text={says!r})

        @hookimpl
        def opencode_tools():
            return {{{tool!r}: Tool(description="Says something.", execute=execute)}}
        """
        )
    )


def marking(marker: Path) -> str:
    """Return the source of a plugin that leaves a mark when it is imported."""
    return tool_plugin("marked", extra=f"open({str(marker)!r}, 'a').write('imported\\n')\n")


def a_tool(says: str) -> Tool:
    """Return a tool that says something."""

    async def execute(call: ToolCall) -> ToolOutput:
        return ToolOutput(text=says)

    return Tool(description="Says something.", execute=execute)


@attrs.define(eq=False)
class Saying:
    """A plugin of the host's own with one tool."""

    says: str
    tool: str = "answer"

    @hookimpl
    def opencode_tools(self) -> Mapping[str, Tool]:
        return {self.tool: a_tool(self.says)}


def opened(folder: Path, **settings: Any) -> AbstractAsyncContextManager[Host]:
    """Open a host in a folder, which is made, with no other plugins than the test's own."""
    folder.mkdir(parents=True, exist_ok=True)
    return Host.open(folder, **{"entry_points": False, **settings})


def tools(where: Host | Place) -> list[str]:
    """Return the names of the tools that a Location offers."""
    place = where.location if isinstance(where, Host) else where
    return [each.name for each in materialize(place.read).definitions]


async def ask(where: Host | Place, tool: str = "answer") -> str:
    """Call a tool as a session would; what it says, or why it was not called."""
    place = where.location if isinstance(where, Host) else where
    match await materialize(place.read).settle(ToolCall(id="1", name=tool)):
        case Completed(output=output):
            return output.text
        case refused:
            return refused.reason


@attrs.define(eq=False)
class Person:
    """Somebody who is asked for trust, and remembers what they were asked."""

    answer: bool = True
    asked: list[Unknown | Changed] = attrs.field(factory=list)

    async def __call__(self, code: ProjectCode, verdict: Unknown | Changed) -> bool:
        self.asked.append(verdict)
        return self.answer


def distribution(folder: Path, name: str, entry_points: Mapping[str, str], *, editable: Path | None = None) -> Path:
    """Write the metadata of an installed distribution."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
    write(info / "entry_points.txt", f"[opencode.plugins]\n{lines}")
    if editable is not None:
        origin = {"url": editable.as_uri(), "dir_info": {"editable": True}}
        write(info / "direct_url.json", json.dumps(origin))
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder on Python's path, to install things in."""
    folder = tmp_path / "site"
    folder.mkdir()
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    """Everything that hosts do to Python's imports is undone when they close; installed modules go with the test."""
    path, meta_path, before = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield
    left = [name for name in sys.modules if name.startswith("opencode_plugin_")]
    assert left == []
    assert sys.meta_path == meta_path
    assert [each for each in sys.path if each not in path] == []
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__opencode_plugin__", False):
            del sys.modules[name]
