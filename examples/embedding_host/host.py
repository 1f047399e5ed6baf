"""Embeds opencode-core in a program: a plugin object, a tool of the application, and a file that is reloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import attrs

from opencode_core import Host
from opencode_core.model.tool import ToolCall
from opencode_core.tools.registry import Completed, materialize
from plugin_sdk import ContextSource, Tool, ToolOutput, hookimpl


@attrs.define(eq=False)
class Customer:
    """A plugin that is an object, so it can hold what the program knows: here, whom it is talking to."""

    name: str

    @hookimpl
    def opencode_context_sources(self) -> Iterator[ContextSource[str]]:
        """Contributes the customer's name."""

        async def load() -> str:
            return self.name

        yield ContextSource(
            key="support/customer",
            load=load,
            baseline=lambda name: f"You are talking to {name}.",
            update=lambda _before, name: f"You are now talking to {name}.",
        )


@attrs.define
class Tickets:
    """What the program is about; the model reaches it through one tool."""

    titles: list[str] = attrs.field(factory=list)

    async def open(self, call: ToolCall) -> ToolOutput:
        """Opens a ticket, as the model asked."""
        self.titles.append(str(call.arguments["title"]))
        return ToolOutput(text=f"Opened ticket {len(self.titles)}.")


async def main() -> None:
    """Runs the host in a folder of its own, so that nothing of yours is read or written."""
    with TemporaryDirectory() as folder:
        await run(Path(folder))


async def run(folder: Path) -> None:
    """Opens a host, prints what the model would be told, calls the tool, and reloads a plugin."""
    tickets = Tickets()
    tone = Path(shutil.copy(Path(__file__).with_name("tone.py"), folder))
    plugins = {"customer": Customer("Ada"), "tone": tone}
    async with Host.open(folder, plugins=plugins, config={}, entry_points=False, data_dir=folder / "data") as host:
        host.attach("support-desk").add_tool("open_ticket", Tool(description="Opens a ticket.", execute=tickets.open))
        await print_baseline(host)
        await call_tool(host, "open_ticket", title="The invoice is wrong")
        edit(tone, "formal", "friendly")
        status = await host.plugins.reload("tone")
        print(f"Reloaded '{status.name}': generation {status.generation} answers.")
        await print_baseline(host)


async def print_baseline(host: Host) -> None:
    """Prints what a new session would be told."""
    print((await host.baseline()).text)


async def call_tool(host: Host, name: str, **arguments: str) -> None:
    """Calls a tool as the model would, and prints what the model would get back."""
    settlement = await materialize(host.location.read).settle(ToolCall(id="call_1", name=name, arguments=arguments))
    print(settlement.output.text if isinstance(settlement, Completed) else settlement.message)


def edit(file: Path, old: str, new: str) -> None:
    """Stands for a person with an editor."""
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    anyio.run(main)
