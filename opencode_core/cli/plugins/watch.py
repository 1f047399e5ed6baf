"""Keeps a host open here, reloads what changes, and prints what happens to plugins until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugins.diagnostics import diagnostic_lines
from opencode_core.cli.text import columns, counted, one_line
from opencode_core.model.event.plugin import PluginEvent, PluginFailed

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus

    from opencode_core.host import Host


@click.command()
@here_too
@pass_call
def watch(call: Call) -> None:
    """Reload plugins when their files change, until Ctrl-C."""
    # Where there are no signal receivers, Ctrl-C arrives as an exception after the host was closed.
    with contextlib.suppress(KeyboardInterrupt):
        run_async(_watch, call, sys.stdout)


async def _watch(call: Call, out: TextIO) -> None:
    import anyio

    async with (
        open_host(call, watch=True, control=True) as host,
        host.events.subscribe(PluginEvent) as events,
        anyio.create_task_group() as group,
    ):
        await group.start(_end_on_signal, group.cancel_scope)
        for line in _start(host, debug=call.debug):
            click.echo(line, file=out)
        async for event in events:
            click.echo(_happened(host, event), file=out)


async def _end_on_signal(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
    import anyio

    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _signal in signals:
                scope.cancel()
    except NotImplementedError:  # Windows has no signal receivers
        task_status.started()


def _start(host: Host, *, debug: bool) -> Iterator[str]:
    statuses = host.plugins.list()
    watched = sorted({str(path) for candidate in host.plugins.candidates() for path in candidate.watched})
    where = f"in {one_line(host.location.location.directory)}, process {os.getpid()}"
    yield f"Watching {counted(len(statuses), 'plugin')} {where}:"
    rows = [(status.name, status.state, f"generation {status.generation}") for status in statuses]
    yield from columns(rows, indent="  ")
    for diagnostic in (each for status in statuses for each in status.diagnostics):
        yield from diagnostic_lines(diagnostic, debug=debug)
    yield "These files and folders are watched:" if watched else "No plugin here has files of its own to watch."
    yield from (f"  {one_line(path)}" for path in watched)
    yield "Press Ctrl-C to stop. From another terminal: opencode-core plugins reload NAME"


def _happened(host: Host, event: PluginEvent) -> str:
    from opencode_core.clock import SystemClock

    word = type(event).__name__.removeprefix("Plugin").lower()
    line = f"{SystemClock().now():%H:%M:%S} {word} '{one_line(event.plugin)}', generation {event.generation}"
    if isinstance(event, PluginFailed):
        line += f": {one_line(event.problem)}{_place(host, event)} {one_line(event.remedy)}"
    return line.rstrip()


def _place(host: Host, event: PluginFailed) -> str:
    """Finds where it went wrong in the diagnostic that was kept with the event."""
    for status in host.plugins.list():
        for diagnostic in status.diagnostics:
            if (status.name, diagnostic.problem) == (event.plugin, event.problem) and diagnostic.file:
                return f" ({one_line(diagnostic.place)})"
    return ""
