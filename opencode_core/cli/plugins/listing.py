"""Lists the plugins that a host in a directory would have: for people, and for programs."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

import attrs
import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugins.diagnostics import echo_diagnostics, errors_of
from opencode_core.cli.text import columns, one_line
from opencode_core.model.plugin import Diagnostic, PluginStatus

NUMBERS = ("gen", "errors", "import ms", "collect ms")
ROOM_FOR_HOOKS = 100
"""How wide a terminal must be to show hooks beside times; in a pipe nothing is ever left out."""


@attrs.frozen
class Survey:
    """What is shown: the plugins of a host, and what is odd about names that no plugin has."""

    directory: str
    plugins: tuple[PluginStatus, ...]
    notices: tuple[Diagnostic, ...]


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("--timing", is_flag=True, help="Add how long each plugin took, and name the slowest.")
@here_too
@pass_call
def list_plugins(call: Call, as_json: bool, timing: bool) -> None:
    """List every plugin that is found here, and what became of it."""
    survey = run_async(take_survey, call)
    if as_json:
        click.echo(json.dumps(_document(survey, debug=call.debug), indent=2))
        return
    _echo_table(survey, timing=timing)
    diagnostics = [*(each for status in survey.plugins for each in status.diagnostics), *survey.notices]
    if timing:
        click.echo(f"\n{_times(survey.plugins)}")
    if diagnostics:
        click.echo()
        echo_diagnostics(diagnostics, debug=call.debug)


async def take_survey(call: Call) -> Survey:
    """Opens a host, asks it for its plugins, and closes it."""
    async with open_host(call) as host:
        return Survey(str(host.location.location.directory), host.plugins.list(), host.plugins.notices)


def _echo_table(survey: Survey, *, timing: bool) -> None:
    if not survey.plugins:
        click.echo("No plugins were found.")
    elif sys.stdout.isatty():
        _echo_rich([_row(status, timing=timing) for status in survey.plugins])
    else:
        rows = [_row(status, timing=timing) for status in survey.plugins]
        click.echo("\n".join(columns([tuple(rows[0]), *(tuple(row.values()) for row in rows)])))


def _row(status: PluginStatus, *, timing: bool) -> dict[str, str]:
    row = {
        "name": status.name,
        "state": status.state,
        "version": status.version or "-",
        "origin": "builtin" if status.builtin else status.origin,
        "gen": str(status.generation),
        "errors": str(errors_of(status)),
    }
    if timing:
        row["import ms"] = f"{status.import_seconds * 1000:.1f}"
        row["collect ms"] = f"{status.collect_seconds * 1000:.1f}"
    return {**row, "hooks": ",".join(status.hooks) or "-"}


def _echo_rich(rows: list[dict[str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    titles = [title for title in rows[0] if title != "hooks" or console.width >= ROOM_FOR_HOOKS or len(rows[0]) <= 7]
    for title in titles:
        justify: Literal["left", "right"] = "right" if title in NUMBERS else "left"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=title not in ("name", "hooks"))
    for row in rows:
        cells = {title: Text(one_line(row[title])) for title in titles}
        cells["hooks"] = Text("\n".join(row["hooks"].replace("opencode_", "").split(",")))
        cells["state"].stylize("green" if row["state"] == "active" else "red")
        table.add_row(*(cells[title] for title in titles))
    console.print(table)


def _times(plugins: tuple[PluginStatus, ...]) -> str:
    if not plugins:
        return "Plugins took 0.0 ms."
    importing = sum(status.import_seconds for status in plugins) * 1000
    collecting = sum(status.collect_seconds for status in plugins) * 1000
    slowest = max(plugins, key=_seconds)
    return (
        f"All plugins together took {importing + collecting:.1f} ms: "
        f"{importing:.1f} ms to import, {collecting:.1f} ms to collect.\n"
        f"The slowest is '{one_line(slowest.name)}', with {_seconds(slowest) * 1000:.1f} ms."
    )


def _seconds(status: PluginStatus) -> float:
    return status.import_seconds + status.collect_seconds


def _document(survey: Survey, *, debug: bool) -> dict[str, Any]:
    return {
        "directory": survey.directory,
        "plugins": [_plugin(status, debug=debug) for status in survey.plugins],
        "notices": [_diagnostic(each, debug=debug) for each in survey.notices],
    }


def _plugin(status: PluginStatus, *, debug: bool) -> dict[str, Any]:
    fields = attrs.asdict(status, recurse=False)
    for name in ("import", "collect"):
        fields[f"{name}_ms"] = round(fields.pop(f"{name}_seconds") * 1000, 3)
    fields["diagnostics"] = [_diagnostic(each, debug=debug) for each in status.diagnostics]
    return fields


def _diagnostic(diagnostic: Diagnostic, *, debug: bool) -> dict[str, Any]:
    fields = attrs.asdict(diagnostic)
    if not debug:
        del fields["traceback"]
    return fields
