"""The commands about plugins."""

from __future__ import annotations

import click

from opencode_core.cli.plugins.check import check
from opencode_core.cli.plugins.listing import list_plugins
from opencode_core.cli.plugins.reload import reload
from opencode_core.cli.plugins.show import show
from opencode_core.cli.plugins.trust import trust
from opencode_core.cli.plugins.watch import watch

__all__ = ["plugins"]


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(context: click.Context) -> None:
    """Look at plugins, check, trust and reload them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (list_plugins, show, check, trust, reload, watch):
    plugins.add_command(_command)
