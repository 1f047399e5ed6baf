"""The root of the command line. Its own commands run without any plugin being loaded."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from opencode_core.cli.call import PROGRAM, Call, PluginCommand, global_options
from opencode_core.cli.context import context
from opencode_core.cli.failures import FAILED, fail, leave_quietly
from opencode_core.cli.plugin_commands import load_commands, say_who_is_missing
from opencode_core.cli.plugins import plugins
from opencode_core.cli.storage import storage
from opencode_core.cli.text import one_line
from opencode_core.cli.tour import tour


def run(args: Sequence[str]) -> int:
    """Runs one command, and returns the exit code."""
    _print_anything()
    call = Call()
    try:
        return _run(list(args), call)
    finally:
        leave_quietly()


def _run(args: list[str], call: Call) -> int:
    try:
        with call.open, root.make_context(PROGRAM, args, obj=call) as context:
            root.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as done:
        return _exit_code(done.code)
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        return fail(error, call)
    return 0


class Root(click.Group):
    """Finds the program's own commands at once, and those of plugins only when they are needed."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command of the program, or else of a plugin."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name.startswith("-"):
            return own
        found = self._plugin_commands(ctx).get(cmd_name)
        if found is None:
            say_who_is_missing(ctx.ensure_object(Call))
            return None
        ctx.ensure_object(Call).running = (cmd_name, found.plugin)
        return found.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the program's commands, then those of each plugin under the plugin's name."""
        super().format_commands(ctx, formatter)
        found_commands = self._plugin_commands(ctx)
        say_who_is_missing(ctx.ensure_object(Call))
        by_plugin: dict[str, list[tuple[str, str]]] = {}
        for name, found in found_commands.items():
            if not found.command.hidden:
                by_plugin.setdefault(found.plugin, []).append((name, one_line(found.command.get_short_help_str(60))))
        for plugin, rows in by_plugin.items():
            with formatter.section(f"Commands of the plugin '{plugin}'"):
                formatter.write_dl(rows)

    def _plugin_commands(self, ctx: click.Context) -> Mapping[str, PluginCommand]:
        call = ctx.ensure_object(Call)
        if call.commands is None:
            call.commands = load_commands(call, taken=self.commands)
        return call.commands


@click.group(cls=Root, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@global_options
@click.version_option(package_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """A framework for durable coding-agent sessions, in which everything but the kernel is a plugin."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


root.add_command(context)
root.add_command(plugins)
root.add_command(storage)
root.add_command(tour)


def _exit_code(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    click.echo(code, err=True)
    return FAILED


def _print_anything() -> None:
    """Prints what the terminal's encoding does not have in escapes, instead of failing."""
    with suppress(AttributeError, ValueError):  # a test or a host may have put something else in its place
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
