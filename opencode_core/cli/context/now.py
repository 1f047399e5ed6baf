"""Tells people what the model of a session would be told now, or why that cannot be said."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import format_exception

import click

from opencode_core.cli.context.epochs import REASONS
from opencode_core.cli.context.looking import Missing, Now, words
from opencode_core.cli.context.sources import Style, baseline_head, baseline_lines, change_lines
from opencode_core.cli.context.values import listed, measured
from opencode_core.cli.context.warned import warning_lines
from opencode_core.cli.text import counted, one_line
from opencode_core.context.epoch import Admit, Begin, Stay
from opencode_core.context.told import extent_of


def now_lines(now: Now, directory: str, style: Style, *, debug: bool) -> Iterator[str]:
    """Yields what would be told if a turn started now."""
    agent = f", agent {one_line(now.agent)}" if now.agent else ""
    yield click.style("Now", bold=True) + f"  in {one_line(directory)}{agent}"
    if now.prompts:
        yield f"  {counted(now.prompts, 'pending prompt')} would be promoted."
    yield from _step(now, style, debug=debug)
    for each in now.missing:
        yield click.style(f"  Unavailable: {_named(each)}", fg="yellow")
    yield from warning_lines(now.warnings, debug=debug)


def _step(now: Now, style: Style, *, debug: bool) -> Iterator[str]:
    match now.step:
        case Begin(because=because):
            named = f" ({listed(because)})" if because else ""
            yield f"  A new epoch would begin, {REASONS.get(now.reason, now.reason)}{named}."
            yield from baseline_head(now.text, style)
            is_first = now.reason == "first"
            yield from baseline_lines(now.sources, style, indent="    ", owners=now.owners, is_first=is_first)
        case Admit():
            yield f"  A system message would tell what changed: {measured(extent_of(now.text))}"
            for source in now.sources:
                yield from change_lines(source, style, indent="    ", owner=now.owners.get(source.key, ""))
        case Stay(blocked=blocked) if blocked:
            yield f"  A fresh baseline is due, and cannot be made without {listed(blocked)}."
            yield "  The one that stands stays in effect, and nothing would be told."
        case Stay():
            yield "  Nothing would be told: the model knows everything already."
        case None:
            yield from _error(now, debug=debug)


def _error(now: Now, *, debug: bool) -> Iterator[str]:
    if now.error is None:
        return
    problem, remedy = words(now.error)
    yield click.style(f"  It cannot be said: {one_line(problem)}", fg="red")
    if remedy:
        yield f"  {one_line(remedy)}"
    if debug:
        for line in "".join(format_exception(now.error)).splitlines():
            yield f"    {one_line(line)}"


def _named(missing: Missing) -> str:
    owner = f" of the plugin '{one_line(missing.owner)}'" if missing.owner else ""
    return f"{one_line(missing.key)}{owner}: {one_line(missing.reason)}"
