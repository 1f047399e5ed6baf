"""Collects what was noted about plugins, and tells people. What several scopes note alike is told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from opencode_core.cli.plugins.diagnostics import diagnostic_lines
from opencode_core.model.plugin import Diagnostic

if TYPE_CHECKING:
    from opencode_core.host import Host


def noted(host: Host, *before: Diagnostic) -> tuple[Diagnostic, ...]:
    """Returns what was noted so far: first what is handed over, then what is odd, then each plugin's own.

    Sources warn while they are observed, so whoever wants to know about that asks afterwards.
    """
    of_plugins = (each for status in host.plugins.list() for each in status.diagnostics)
    known: dict[tuple[str, str], Diagnostic] = {}
    for each in (*before, *host.plugins.notices, *of_plugins):
        known.setdefault((each.plugin, each.problem), each)
    return tuple(known.values())


def warning_lines(warnings: Iterable[Diagnostic], *, debug: bool) -> Iterator[str]:
    """Yields each with what to do about it."""
    for each in warnings:
        first, *rest = diagnostic_lines(each, debug=debug, indent="  ")
        yield click.style(first, fg="red" if each.severity == "error" else "yellow")
        yield from rest


def warning_documents(warnings: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Returns them for programs."""
    return [{"plugin": each.plugin, "problem": each.problem, "remedy": each.remedy or None} for each in warnings]
