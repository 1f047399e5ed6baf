"""Shows what the model of one session was told, and what it would be told now. Changes nothing."""

from __future__ import annotations

import json

import click

from opencode_core.cli.call import Call, here_too, pass_call
from opencode_core.cli.hosts import run_async
from opencode_core.cli.plugin_commands import warn_of_missing


@click.command()
@click.argument("session")
@click.option("--storage", "url", metavar="URL", help="The store it is kept in; the configured one by default.")
@click.option("--full", is_flag=True, help="Print every text in full.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs; nothing is shortened in it.")
@here_too
@pass_call
def show(call: Call, session: str, url: str | None, full: bool, as_json: bool) -> None:
    """Show what a session was told, by whom, at which turn.

    Everything about the past is read from the log of the session. A number with '#' before it is a place in that log.

    \b
    epoch           a span in which every request begins with the same baseline
    system message  tells the model what changed since, in the middle of the conversation
    turn            one request to a provider, with the digest of what it has in common with
                    the request before it: while that is stable, providers can cache it

    At the end is what the model was last told of each source, and what it would be told if a turn started now. For that
    the directory of the session is opened, as a host would.
    """
    from opencode_core.cli.context.looking import look_at

    seen = run_async(look_at, call, session, url)
    warn_of_missing(seen.plugins)
    if as_json:
        from opencode_core.cli.context.documents import session_document

        click.echo(json.dumps(session_document(seen), indent=2))
        return
    from opencode_core.cli.context.lines import session_lines
    from opencode_core.cli.context.values import width

    for line in session_lines(seen, full=full, room=width(), debug=call.debug):
        click.echo(line)
