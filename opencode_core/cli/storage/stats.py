"""Shows how much is in a store, for people and for programs. Changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import run_async
from opencode_core.cli.storage.stores import open_as_it_is, url_argument
from opencode_core.cli.text import columns, one_line, size

if TYPE_CHECKING:
    from opencode_core.storage.statistics import Size, Statistics


@click.command()
@url_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@here_too
@pass_call
def stats(call: Call, url: str | None, as_json: bool) -> None:
    """Show what is in a store, and how large it is.

    The sizes of tables and sessions are those of the documents and their keys as text. On disk a store takes up more or
    less, depending on the backend: that is shown too. What is left over belongs to sessions that are not there any
    more.

    Everything is read once, and nothing is changed.
    """
    found = run_async(_stats, call, url)
    if as_json:
        click.echo(json.dumps(attrs.asdict(found), indent=2))
        return
    click.echo("\n".join(columns(_facts(found))))
    _echo_table("table", found.tables)
    _echo_table("largest sessions", found.largest)


async def _stats(call: Call, url: str | None) -> Statistics:
    from opencode_core.storage.statistics import measure

    async with open_as_it_is(call, url) as storage:
        return await measure(storage)


def _facts(found: Statistics) -> Iterator[tuple[str, str]]:
    facts = found.facts
    yield "store", facts.place
    yield "kind", f"{facts.kind}, layout {facts.schema}"
    yield "version", "- (the store is empty)" if found.version is None else str(found.version)
    yield "on disk", "-" if facts.bytes is None else size(facts.bytes)
    yield "sessions", f"{found.sessions:,}"
    yield "events", f"{found.events:,}" + (f", {found.bytes_per_event:,.0f} B each" if found.events else "")
    yield "left over", f"{size(found.orphans.bytes)} in {found.orphans.documents:,} documents"


def _echo_table(title: str, sizes: Sequence[Size]) -> None:
    if not sizes:
        return
    rows = [(title, "documents", "size"), *((each.name, f"{each.documents:,}", size(each.bytes)) for each in sizes)]
    click.echo()
    if sys.stdout.isatty():
        _echo_rich(rows)
    else:
        click.echo("\n".join(columns(rows)))


def _echo_rich(rows: Sequence[tuple[str, str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, title in enumerate(rows[0]):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in rows[1:]:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    Console(highlight=False).print(table)
