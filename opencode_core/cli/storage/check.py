"""Says whether everything in a store is right, for people and for programs. Changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs
import click

from opencode_core.cli.call import Call, here_too
from opencode_core.cli.failures import FAILED, complain
from opencode_core.cli.hosts import run_async
from opencode_core.cli.storage.stores import open_as_it_is, url_argument
from opencode_core.cli.text import counted, one_line

if TYPE_CHECKING:
    from opencode_core.model.storage import StorageFacts
    from opencode_core.storage.checking import Checked


@click.command()
@url_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@here_too
@click.pass_context
def check(context: click.Context, url: str | None, as_json: bool) -> None:
    """Look at everything in a store, and say what is wrong.

    It asks the backend to look at its own files or tables. It reads the log of every session: nothing is missing in it,
    every event can be read. It replays each log, and compares the messages, parts and lists that follow from it with
    those that are stored. It looks for rows that belong to nothing.

    Nothing is changed, and others may use the store meanwhile. What is found is told by table and key, never by
    content. The exit code is 0 when everything is right, and 1 when something is wrong.
    """
    facts, checked = run_async(_check, context.ensure_object(Call), url)
    if as_json:
        click.echo(json.dumps(_document(facts, checked), indent=2))
    else:
        _echo(facts, checked)
    if checked.findings:
        context.exit(FAILED)


async def _check(call: Call, url: str | None) -> tuple[StorageFacts, Checked]:
    from opencode_core.storage.checking import check

    async with open_as_it_is(call, url) as storage:
        return await storage.facts(), await check(storage)


def _echo(facts: StorageFacts, checked: Checked) -> None:
    what = f"{counted(checked.logs, 'log')} with {counted(checked.events, 'event')}"
    if not checked.findings:
        empty = " It is empty." if not checked.logs else ""
        click.secho(f"The store '{one_line(facts.place)}' is right: {what}.{empty}", fg="green")
        return
    for finding in checked.findings:
        click.echo(f"{finding.area}: {one_line(finding)}")
    complain(
        f"The store '{one_line(facts.place)}' is not right: {what}.",
        "Make a copy of it as it is, then restore a backup, or report what is above.",
    )


def _document(facts: StorageFacts, checked: Checked) -> dict[str, object]:
    return {
        "kind": facts.kind,
        "place": facts.place,
        "right": not checked.findings,
        "logs": checked.logs,
        "events": checked.events,
        "findings": [attrs.asdict(finding) for finding in checked.findings],
    }
