"""Run by the Python of a test's environment: opens a host on what is installed there, and prints what it sees.

probe.py look                           the plugins, the baseline, and what the tool answers
probe.py reload PLUGIN FILE OLD NEW     the same before and after an edit and a reload
probe.py watch PLUGIN FILE OLD NEW      the same before and after an edit that the host notices by itself
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

import opencode_core
from opencode_core import Host, PluginReloaded
from opencode_core.model.tool import ToolCall
from opencode_core.tools.registry import Completed, materialize

TOOL = "greet"


async def main(*argv: str) -> None:
    action, *arguments = argv
    async with Host.open(config={}, watch=action == "watch") as host:
        seen = [await look(host)]
        if action != "look":
            plugin, file, old, new = arguments
            async with host.events.subscribe(PluginReloaded) as reloads:
                edit(Path(file), old, new)
                if action == "reload":
                    await host.plugins.reload(plugin)
                with anyio.fail_after(20):
                    assert (await anext(reloads)).plugin == plugin
            seen.append(await look(host))
    print(json.dumps(seen))


async def look(host: Host) -> dict[str, Any]:
    """Return what a person and the model see of a host now."""
    return {
        "kernel": str(Path(opencode_core.__file__).parent.parent),
        "plugins": {
            status.name: {
                "state": status.state,
                "version": status.version,
                "builtin": status.builtin,
                "generation": status.generation,
                "problems": [each.problem for each in status.diagnostics],
            }
            for status in host.plugins.list()
        },
        "baseline": (await host.baseline()).text,
        "tool": await ask(host),
    }


async def ask(host: Host) -> str | None:
    """Return what the tool of the test's plugin answers; None when there is no such tool."""
    settlement = await materialize(host.location.read).settle(ToolCall(id="call_1", name=TOOL))
    return settlement.output.text if isinstance(settlement, Completed) else None


def edit(file: Path, old: str, new: str) -> None:
    """Replace a word in a file, and see that it was there."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
