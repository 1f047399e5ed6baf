"""Shows what a new session in a directory would be told: for people, for programs, or exactly. Opens no store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugin_commands import warn_of_missing
from opencode_core.cli.text import columns, one_line, shown, size
from opencode_core.model.plugin import Diagnostic, PluginStatus

if TYPE_CHECKING:
    from opencode_core.context.preview import Preview, SourcePreview
    from opencode_core.host import Host


@attrs.frozen(kw_only=True)
class Previewed:
    """What is shown.

    Attributes:
        directory: Where.
        agent: For which agent.
        is_defined: Whether anybody defines that agent.
        preview: What it would be told.
        plugins: The plugins that are there.
        warnings: What was noted about them, and what is odd beside them.
        lacks: Whether that means that something was left out.
    """

    directory: str
    agent: str
    is_defined: bool
    preview: Preview
    plugins: tuple[PluginStatus, ...]
    warnings: tuple[Diagnostic, ...]
    lacks: bool


@click.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--agent", metavar="NAME", help="For this agent, instead of the one that is selected by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("--text", "as_text", is_flag=True, help="Print the baseline itself, byte for byte, and nothing else.")
@here_too
@pass_call
def preview(call: Call, directory: Path | None, agent: str | None, as_json: bool, as_text: bool) -> None:
    """Show what a new session here would be told.

    That is its Baseline System Context: what every request to its model begins with. It is shown by source, with the
    plugin that contributes it, its size, and about how many tokens it is (a quarter of its characters).

    A source may be unavailable. One that is required holds up the first turn of a session until it is there; any other
    is told as soon as it is there. What was left out, and why, is said at the end.
    """
    if as_json and as_text:
        raise click.UsageError("Only one of --json and --text can be given.")
    if directory is not None:
        call.directory = call.directory / directory
    previewed = run_async(_look, call, agent)
    warn_of_missing(previewed.plugins)
    if as_text:
        _echo_text(previewed.preview)
    elif as_json:
        from opencode_core.cli.context.documents import preview_document

        click.echo(json.dumps(preview_document(previewed), indent=2))
    else:
        for line in _lines(previewed, debug=call.debug):
            click.echo(line)


async def _look(call: Call, agent: str | None) -> Previewed:
    from opencode_core.cli.context.warned import noted
    from opencode_core.context.preview import preview
    from opencode_core.session.selecting import select_agent

    async with open_host(call, watch=False) as host:
        name, definition = select_agent(host.location.read(), agent)
        before = noted(host)
        observation = await host.observe(agent=agent)
        warnings = noted(host)
        return Previewed(
            directory=str(host.location.location.directory),
            agent=name,
            is_defined=definition is not None,
            preview=preview(observation),
            plugins=host.plugins.list(),
            warnings=warnings,
            lacks=any(_lacks(each, host, before) for each in warnings),
        )


def _lacks(warning: Diagnostic, host: Host, before: tuple[Diagnostic, ...]) -> bool:
    """Whether a warning means that something was left out: one of an import that was slow, for example, does not."""
    return warning.severity == "error" or warning in host.plugins.notices or warning not in before


def _echo_text(preview: Preview) -> None:
    if preview.blocked:
        raise _blocked(preview)
    if sys.stdout.isatty():  # which would obey what is in it
        click.echo("\n".join(shown(line) for line in preview.text.split("\n")))
    else:
        click.echo(preview.text.encode("utf-8", "surrogatepass"), nl=False)


def _blocked(preview: Preview) -> Exception:
    from opencode_core.errors import InitializationBlockedError

    reasons = {each.key: each.reason for each in preview.missing}
    owners = {each.key: each.owner for each in preview.missing}
    return InitializationBlockedError(preview.blocked, reasons, owners)


def _lines(previewed: Previewed, *, debug: bool) -> Iterator[str]:
    from opencode_core.cli.context.values import measured, short_digest
    from opencode_core.cli.context.warned import warning_lines
    from opencode_core.context.told import extent_of

    preview, extent = previewed.preview, extent_of(previewed.preview.text)
    undefined = "" if previewed.is_defined else ", which no plugin defines"
    yield click.style(f"A new session in {one_line(previewed.directory)}", bold=True)
    yield f"for the agent '{one_line(previewed.agent)}'{undefined}, would start from this baseline:"
    yield ""
    told = [each for each in preview.sources if each.state == "told"]
    if told:
        yield from columns([("source", "plugin", "size", "tokens"), *map(_row, told)], indent="  ")
        yield ""
    digest = "" if preview.blocked else f", sha256 {short_digest(extent.digest)}"
    yield f"Together {measured(extent)}{digest}." if told else "No source has anything to tell."
    yield from _missing(preview, lacks=previewed.lacks)
    if previewed.warnings and (preview.missing or not previewed.lacks):
        yield "Also noted:"
    yield from warning_lines(previewed.warnings, debug=debug)
    yield from _absent(preview)


def _row(source: SourcePreview) -> tuple[str, str, str, str]:
    from opencode_core.context.told import extent_of

    extent = extent_of(source.text)
    return source.key, source.owner or "-", size(extent.bytes), f"{extent.tokens:,}"


def _missing(preview: Preview, *, lacks: bool) -> Iterator[str]:
    if not preview.missing and lacks:
        yield click.style("It is complete, but something was left out:", fg="yellow")
        return
    if not preview.missing:
        yield click.style("It is complete.", fg="green")
        return
    yield click.style("It is not complete. What is missing:", fg="yellow")
    for each in preview.missing:
        owner = f" of the plugin '{one_line(each.owner)}'" if each.owner else ""
        what = "required" if each.required else "told when it is there"
        yield f"  {one_line(each.key)}{owner}, {what}: {one_line(each.reason)}"
    if preview.blocked:
        yield click.style("A first turn would be blocked, and its prompt would wait.", fg="red", bold=True)
    else:
        yield "A first turn would not wait for that."


def _absent(preview: Preview) -> Iterator[str]:
    absent = [each.key for each in preview.sources if each.state == "absent"]
    if absent:
        yield f"Nothing to tell: {', '.join(one_line(key) for key in absent)}."
