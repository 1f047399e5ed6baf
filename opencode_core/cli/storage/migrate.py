"""Brings a store up to date, and says what was done. Removes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.failures import warn
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.storage.stores import open_unprepared, url_argument
from opencode_core.cli.text import counted, one_line

if TYPE_CHECKING:
    from opencode_core.model.storage import StorageFacts
    from opencode_core.ports.storage import Storage
    from opencode_core.storage.schema import Prepared


@click.command()
@url_argument
@here_too
@pass_call
def migrate(call: Call, url: str | None) -> None:
    """Bring a store up to date.

    A host does this by itself when it opens a store. Here it is done on its own, and what was done is said. A file or a
    folder whose layout has to change is copied first, and where to is said.

    Sessions that a program of the first generation added to a folder meanwhile are put into the lists, so run this
    after using one. Documents that cannot be read stay as they are, and are named.

    Running it again does no harm.
    """
    facts, prepared = run_async(_migrate, call, url)
    _echo(facts, prepared)
    for problem in prepared.unreadable:
        warn(f"{problem} It was left as it is.")


async def _migrate(call: Call, url: str | None) -> tuple[StorageFacts, Prepared]:
    async with open_host(call, watch=False) as host, open_unprepared(host, url, migrate=True) as storage:
        return await storage.facts(), await _prepared(storage)


async def _prepared(storage: Storage) -> Prepared:
    import attrs

    from opencode_core.storage.adopting import adopt
    from opencode_core.storage.schema import VERSION, prepare, version_in

    prepared = await prepare(storage, create=False)
    if prepared.found != VERSION:
        return prepared
    late = await adopt(storage, may_go_on=lambda rows: version_in(rows) == VERSION)
    return attrs.evolve(prepared, adopted=late.sessions, unreadable=late.unreadable)


def _echo(facts: StorageFacts, prepared: Prepared) -> None:
    from opencode_core.storage.schema import VERSION

    place = one_line(facts.place)
    if prepared.found is None:
        click.echo(f"The store '{place}' is empty, and nothing has to be migrated.")
        return
    if facts.migrated_from is not None:
        click.echo(f"The layout of '{place}' was brought from {facts.migrated_from} to {facts.schema}.")
    if facts.backup is not None:
        click.echo(f"What was there before is in '{one_line(facts.backup)}'.")
    if prepared.found < VERSION:
        click.echo(f"The session tables were brought from version {prepared.found} to {VERSION}.")
    if prepared.adopted:
        click.echo(f"{counted(prepared.adopted, 'session')} of the first generation can be listed now.")
    click.secho(f"The store '{place}' is up to date.", fg="green")
