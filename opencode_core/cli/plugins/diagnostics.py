"""Prints what went wrong with plugins: two lines each, and the traceback with ``--debug``."""

from __future__ import annotations

from collections.abc import Iterable

import click

from opencode_core.cli.text import one_line
from opencode_core.model.plugin import Diagnostic, PluginStatus


def diagnostic_lines(diagnostic: Diagnostic, *, debug: bool, indent: str = "") -> list[str]:
    """Returns what happened and where, what to do, and the traceback when it is wanted."""
    word = "Error" if diagnostic.severity == "error" else "Warning"
    where = f" ({one_line(diagnostic.place)})" if diagnostic.file else ""
    lines = [f"{indent}{word}: {one_line(diagnostic.problem)}{where}"]
    lines.append(f"{indent}  {one_line(diagnostic.remedy) or 'Run again with --debug to see the traceback.'}")
    if debug and diagnostic.traceback:
        lines += [f"{indent}    {line}" for line in diagnostic.traceback.rstrip().splitlines()]
    return lines


def echo_diagnostics(diagnostics: Iterable[Diagnostic], *, debug: bool, indent: str = "") -> None:
    """Prints diagnostics, oldest first."""
    for diagnostic in diagnostics:
        first, *rest = diagnostic_lines(diagnostic, debug=debug, indent=indent)
        click.secho(first, fg="red" if diagnostic.severity == "error" else "yellow")
        for line in rest:
            click.echo(line)


def errors_of(status: PluginStatus) -> int:
    """Counts what took something away from a plugin."""
    return sum(each.severity == "error" for each in status.diagnostics)


def is_wrong(status: PluginStatus) -> bool:
    """Whether a plugin does not do everything it should, anywhere."""
    return status.state != "active" or errors_of(status) > 0
