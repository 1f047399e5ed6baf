"""Copies one store into another, and shows how far it is. Changes nothing in the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.failures import warn
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.storage.progress import showing_progress
from opencode_core.cli.storage.stores import open_unprepared
from opencode_core.cli.text import counted, one_line

if TYPE_CHECKING:
    from opencode_core.storage.copying import Copied
    from opencode_core.storage.schema import Prepared


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@here_too
@pass_call
def copy(call: Call, source: str, target: str, quiet: bool) -> None:
    """Copy everything from one store into another.

    The store TO is made, or is empty. FROM is only read, and at the end both are compared. Nobody may write to FROM
    meanwhile: if somebody does, that is noticed. A store of the first generation is copied as it is, and brought up to
    date in TO alone.

    Until everything was compared, TO says that it is unfinished, and no host opens it. When the copy was interrupted,
    run it again: it begins anew.

    \b
      opencode-core storage copy jsonfiles:///home/me/old/storage sqlite:///home/me/opencode.db
    """
    from opencode_core.storage.urls import shown

    names = shown(source), shown(target)
    try:
        copied, prepared = run_async(_copy, call, source, target, quiet)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. '{one_line(names[1])}' is marked as unfinished; run it again.", err=True)
        raise
    what = f"{counted(copied.documents, 'document')} in {counted(copied.tables, 'table')}"
    click.secho(f"Copied {what} from '{one_line(names[0])}' to '{one_line(names[1])}'; both are the same.", fg="green")
    if prepared.adopted:
        click.echo(f"{counted(prepared.adopted, 'session')} of the first generation can be listed in the copy.")
    for problem in prepared.unreadable:
        warn(f"{problem} It was copied as it is.")


async def _copy(call: Call, source: str, target: str, quiet: bool) -> tuple[Copied, Prepared]:
    from opencode_core.storage.copying import copy
    from opencode_core.storage.schema import prepare, version_in
    from opencode_core.storage.urls import shown

    async with open_host(call, watch=False) as host, open_unprepared(host, source) as original:
        await original.view(version_in)  # before a target is made for what cannot be copied
        async with open_unprepared(host, target, create=True) as new:
            with showing_progress(quiet=quiet) as report:
                copied = await copy(original, new, source_name=shown(source), report=report)
            return copied, await prepare(new)
