"""A first look: what this is, which plugins loaded here, and what a session would be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugins.diagnostics import echo_diagnostics
from opencode_core.cli.text import counted, one_line, shown, size
from opencode_core.errors import ContextError
from opencode_core.model.plugin import Diagnostic, PluginStatus

if TYPE_CHECKING:
    from opencode_core.host import Host
    from opencode_core.model.context import ContextSource, Observation

MOST_LINES = 12


@attrs.frozen
class Part:
    """What one context source says, or why it says nothing."""

    key: str
    text: str
    problem: str = ""


@attrs.frozen
class Sights:
    """What the tour shows."""

    directory: str
    plugins: Sequence[PluginStatus]
    notices: Sequence[Diagnostic]
    parts: Sequence[Part]


@click.command()
@here_too
@pass_call
def tour(call: Call) -> None:
    """Look around: what loaded here, and what a session is told."""
    sights = run_async(_look_around, call)
    click.echo("opencode-core runs durable coding-agent sessions and decides what models see.")
    click.echo("All else is a plugin: context, tools, providers, storage. So are the builtins.")
    _echo_plugins(sights, debug=call.debug)
    _echo_baseline(sights.parts)
    _echo_next(sights.plugins)


async def _look_around(call: Call) -> Sights:
    async with open_host(call) as host:
        parts = await _baseline(host)
        directory = str(host.location.location.directory)
        return Sights(directory, host.plugins.list(), host.plugins.notices, parts)


async def _baseline(host: Host) -> list[Part]:
    """Renders each source alone, so that one that fails hides no other."""
    observation = await host.observe()
    return [_render(source, observation) for source in observation.sources]


def _render(source: ContextSource[Any], observation: Observation) -> Part:
    from opencode_core.context.reconcile import initialize

    if source.key in observation.unavailable:
        return Part(source.key, "", observation.reasons.get(source.key, ""))
    try:
        return Part(source.key, initialize(attrs.evolve(observation, sources=(source,))).text)
    except ContextError as error:
        return Part(source.key, "", str(error))


def _echo_plugins(sights: Sights, *, debug: bool) -> None:
    active = sum(status.state == "active" for status in sights.plugins)
    missing = len(sights.plugins) - active
    also = f", {missing} not active" if missing else ""
    _heading(f"{counted(active, 'plugin')} loaded in {one_line(sights.directory)}{also}")
    for status in sights.plugins:
        click.secho(f"  {one_line(status.name)}", bold=True, nl=False)
        click.echo(f"  {one_line(status.description)}" if status.description else "")
        for line in _contributions(status):
            click.echo(f"    {one_line(line)}")
        echo_diagnostics(status.diagnostics, debug=debug, indent="    ")
    echo_diagnostics(sights.notices, debug=debug, indent="  ")


def _contributions(status: PluginStatus) -> Iterator[str]:
    if status.state != "active":
        yield f"{status.state}, so it contributes nothing"
    elif status.contributions:
        yield from status.contributions
    else:
        yield ", ".join(f"hook: {hook}" for hook in status.hooks) or "it contributes nothing"


def _echo_baseline(parts: Sequence[Part]) -> None:
    total = size(len("\n\n".join(part.text for part in parts if part.text).encode()))
    _heading(f"A session here would start from this Baseline System Context, {total}")
    if not parts:
        click.echo("  Nothing: no plugin here contributes a context source.")
    for part in parts:
        click.secho(f"  {one_line(part.key)}", bold=True, nl=False)
        click.echo(f"  {size(len(part.text.encode()))}" if not part.problem else "")
        for line in _excerpt(part):
            click.echo(f"    {line}")


def _excerpt(part: Part) -> Iterator[str]:
    if part.problem:
        yield f"Error: {one_line(part.problem)}"
        return
    lines = part.text.splitlines()
    yield from (shown(line) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"... and {counted(len(lines) - MOST_LINES, 'more line')}"


def _echo_next(plugins: Sequence[PluginStatus]) -> None:
    interesting = sorted(plugins, key=lambda status: status.state == "active")
    name = interesting[0].name if interesting else "NAME"
    is_untrusted = any(status.state == "untrusted" for status in plugins)
    _heading("Try next")
    click.echo("  opencode-core context preview")
    click.echo("  opencode-core plugins list --timing")
    click.echo(f"  opencode-core plugins show {one_line(name)}")
    click.echo(f"  opencode-core plugins {'trust' if is_untrusted else 'watch'}")


def _heading(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)
