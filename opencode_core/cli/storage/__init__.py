"""The commands about stores."""

from __future__ import annotations

import click

from opencode_core.cli.storage.check import check
from opencode_core.cli.storage.copy import copy
from opencode_core.cli.storage.migrate import migrate
from opencode_core.cli.storage.stats import stats

__all__ = ["storage"]


@click.group(invoke_without_command=True)
@click.pass_context
def storage(context: click.Context) -> None:
    """Check stores, migrate, copy and measure them.

    A store is where sessions are kept. It is named by a URL:

    \b
      sqlite:///home/me/opencode.db          one file, the default
      jsonfiles:///home/me/opencode/storage  a folder, as the first generation had it
      postgresql://me@server/opencode        a PostgreSQL database
      memory:                                nothing that lasts

    A path without a slash in front is relative: sqlite:opencode.db. Plugins may offer other schemes. Which store is
    used without a URL: OPENCODE_STORAGE, else the key 'storage' in your configuration, else 'opencode.db' in the folder
    where hosts keep what they must remember.

    None of these commands makes a store where there is none, but 'copy' its target.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (check, migrate, copy, stats):
    storage.add_command(_command)
