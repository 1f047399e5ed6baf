"""Has every running host of this person reload a plugin; when there is none, tries here whether it would work."""

from __future__ import annotations

import click

from opencode_core.cli.call import Call, here_too
from opencode_core.cli.failures import FAILED, complain
from opencode_core.cli.hosts import hosts_folder, open_host, run_async
from opencode_core.cli.plugins.diagnostics import echo_diagnostics, is_wrong
from opencode_core.cli.text import one_line


@click.command()
@click.argument("name")
@here_too
@click.pass_context
def reload(context: click.Context, name: str) -> None:
    """Reload a plugin in every running host."""
    failed = run_async(_reload, context.ensure_object(Call), name)
    if failed:
        context.exit(FAILED)


async def _reload(call: Call, name: str) -> bool:
    from opencode_core.control import reload_everywhere

    answers = failures = 0
    async for answer in reload_everywhere(name, hosts_folder()):
        answers += 1
        who = f"process {answer.process} in {one_line(answer.directory)}"
        if answer.problem:
            failures += 1
            complain(f"{who}: {answer.problem}", answer.remedy, place=answer.place)
        else:
            click.echo(f"{who}: '{one_line(name)}' is now generation {answer.generation}")
    return failures > 0 if answers else not await _works_here(call, name)


async def _works_here(call: Call, name: str) -> bool:
    async with open_host(call) as host:
        status = await host.plugins.reload(name)
    click.echo("No host is running, so nothing was reloaded.")
    if is_wrong(status):
        echo_diagnostics(status.diagnostics, debug=call.debug)
        return False
    click.echo(f"Checked instead: the code of '{one_line(status.name)}' loads here, and loads again.")
    return True
