"""Collects the commands that plugins add. A plugin that breaks this loses its own commands, and nobody else's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from opencode_core.cli.call import Call, PluginCommand
from opencode_core.cli.failures import warn
from opencode_core.cli.hosts import keep_host_open
from opencode_core.cli.text import counted
from opencode_core.errors import OpencodeError, PluginContractError, PluginError
from opencode_core.model.plugin import PluginStatus

if TYPE_CHECKING:
    from opencode_core.host import Host
    from opencode_core.plugins.relay import Hooks

HOOK = "opencode_cli"


def load_commands(call: Call, *, taken: Collection[str]) -> dict[str, PluginCommand]:
    """Opens a host until the run ends, and returns the commands of its plugins by name, in order.

    Args:
        call: This run.
        taken: The names that the program itself has.
    """
    try:
        host = call.open.enter_context(keep_host_open(call))
    except OpencodeError as error:
        warn(f"Plugins and their commands are missing: {error}")
        return {}
    call.host = host
    return _collect(host, taken)


def say_who_is_missing(call: Call) -> None:
    """Names the plugins that are not there, in one line: a command that is not found may be theirs."""
    warn_of_missing(call.host.plugins.list() if call.host is not None else ())


def warn_of_missing(statuses: Iterable[PluginStatus]) -> None:
    """Names the plugins that are not there, in one line: what is missing may be theirs."""
    missing = [status for status in statuses if status.state in ("failed", "untrusted")]
    if missing:
        named = ", ".join(f"'{status.name}' ({status.state})" for status in missing)
        verb = "is" if len(missing) == 1 else "are"
        warn(f"{counted(len(missing), 'plugin')} {verb} not active: {named}. See 'opencode-core plugins list'.")


def commands_of(plugin: str, hooks: Hooks, options: Any) -> Mapping[str, click.Command]:
    """Asks one plugin for its commands.

    Raises:
        PluginError: The hook raised, or added something that is not a command.
    """
    group = click.Group()
    hooks.ask(HOOK, cli=group, options=options)
    for name, command in group.commands.items():
        if not isinstance(command, click.Command):
            raise _refusal(plugin, hooks, f"added a '{type(command).__name__}' as '{name}'", "Add a click command.")
        if not name or name.startswith("-"):
            raise _refusal(plugin, hooks, f"added a command called '{name}'", "Give it a name that can be typed.")
    return group.commands


def _collect(host: Host, taken: Collection[str]) -> dict[str, PluginCommand]:
    collected: dict[str, PluginCommand] = {}
    for plugin, hooks, options in host.plugins.implementing(HOOK, host.location):
        try:
            added = commands_of(plugin, hooks, options)
            _refuse_taken(plugin, hooks, added, taken, collected)
        except PluginError as error:
            host.plugins.report(plugin, error)
            warn(f"The commands of the plugin '{plugin}' are missing: {_with_place(error)}")
            continue
        collected |= {name: PluginCommand(plugin, command) for name, command in sorted(added.items())}
    return collected


def _refuse_taken(
    plugin: str,
    hooks: Hooks,
    added: Mapping[str, click.Command],
    taken: Collection[str],
    collected: Mapping[str, PluginCommand],
) -> None:
    for name in sorted(added):
        if name in taken:
            raise _refusal(plugin, hooks, f"added the command '{name}', which the program itself has", "Rename it.")
        if name in collected:
            owner = collected[name].plugin
            raise _refusal(plugin, hooks, f"added the command '{name}', which the plugin '{owner}' has", "Rename it.")


def _refusal(plugin: str, hooks: Hooks, what: str, todo: str) -> PluginContractError:
    return PluginContractError(
        f"The hook '{HOOK}' of the plugin '{plugin}' {what}.", todo, plugin=plugin, hook=HOOK, place=hooks.place(HOOK)
    )


def _with_place(error: PluginError) -> str:
    return f"{error.problem} ({error.place})" if error.place else error.problem
