"""Shows everything that is known of one plugin."""

from __future__ import annotations

from collections.abc import Iterator

import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugins.diagnostics import echo_diagnostics
from opencode_core.cli.text import one_line
from opencode_core.model.plugin import PluginStatus

WIDTH = 15


@click.command()
@click.argument("name")
@here_too
@pass_call
def show(call: Call, name: str) -> None:
    """Show everything about one plugin."""
    echo_status(run_async(_get, call, name), debug=call.debug)


async def _get(call: Call, name: str) -> PluginStatus:
    async with open_host(call) as host:
        return host.plugins.get(name)


def echo_status(status: PluginStatus, *, debug: bool) -> None:
    """Prints a plugin: its facts, then what it contributes, then what went wrong."""
    click.secho(one_line(status.name), bold=True, nl=False)
    click.echo(f"  {one_line(status.description)}" if status.description else "")
    for label, values in _facts(status):
        for number, value in enumerate(values):
            click.echo(f"  {label if number == 0 else '':<{WIDTH}}{one_line(value)}")
    echo_diagnostics(status.diagnostics, debug=debug, indent="  ")


def _facts(status: PluginStatus) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "state", (status.state,)
    yield "origin", (f"{status.origin}, builtin" if status.builtin else status.origin,)
    yield "location", (status.location,)
    yield "version", (status.version or "-",)
    yield "folder", (status.folder or "- (it serves every directory)",)
    yield "generation", (str(status.generation),)
    yield "import", (f"{status.import_seconds * 1000:.1f} ms",)
    yield "collect", (f"{status.collect_seconds * 1000:.1f} ms",)
    yield "hooks", status.hooks or ("-",)
    yield "contributions", status.contributions or ("-",)
    yield "also found", status.also_found
