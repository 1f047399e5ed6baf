"""The commands about what models are told."""

from __future__ import annotations

from difflib import get_close_matches

import click

from opencode_core.cli.context.preview import preview
from opencode_core.cli.context.show import show
from opencode_core.cli.text import one_line
from opencode_core.ids import PREFIXES

__all__ = ["context"]


class SessionOrCommand(click.Group):
    """Takes the id of a session in place of a command, and shows that session."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the command before an id that stands without one, also behind options."""
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        if not is_named and any(_is_session(arg) for arg in args):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command; a word that is neither a command nor an id is an error that says what it may have been."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.commands, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(
                f"'{one_line(args[0])}' is neither a command nor the id of a session,"
                f" which begins with '{PREFIXES['session']}_'.{meant}",
                ctx,
            )
        return super().resolve_command(ctx, args)


@click.group(cls=SessionOrCommand, invoke_without_command=True, subcommand_metavar="SESSION | COMMAND [ARGS]...")
@click.pass_context
def context(context: click.Context) -> None:
    """Show what models are told, and why.

    \b
      opencode-core context preview      what a new session here would be told
      opencode-core context ses_0123...  what a session was told, turn by turn

    Both only look: they change no session, and make no store where there is none.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (preview, show):
    context.add_command(_command)


def _is_session(word: str) -> bool:
    return word.startswith(f"{PREFIXES['session']}_")
