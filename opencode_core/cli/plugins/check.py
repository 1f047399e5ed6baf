"""Loads one plugin alone, and says what it contributes or what is wrong. Leaves nothing behind."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from opencode_core.cli.call import Call, here_too
from opencode_core.cli.failures import FAILED, complain
from opencode_core.cli.hosts import open_host, run_async
from opencode_core.cli.plugin_commands import HOOK, commands_of
from opencode_core.cli.plugins.diagnostics import is_wrong
from opencode_core.cli.plugins.show import echo_status
from opencode_core.cli.text import counted, one_line
from opencode_core.errors import PluginError, PluginNotFoundError
from opencode_core.model.json import JSON
from opencode_core.model.plugin import PluginStatus

if TYPE_CHECKING:
    from opencode_core.config import PluginSpec
    from opencode_core.host import Host


def _options(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, JSON]:
    options: dict[str, JSON] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"'{value}' is not NAME=VALUE.")
        options[name] = _value(text)
    return options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@click.command()
@click.argument("target", metavar="PATH_OR_MODULE")
@click.option(
    "--option",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_options,
    help="Set an option of the plugin; JSON, or else text. May be repeated.",
)
@here_too
@click.pass_context
def check(context: click.Context, target: str, options: dict[str, JSON]) -> None:
    """Load one plugin alone, and say what is right or wrong.

    PATH_OR_MODULE is a '.py' file, a folder with an '__init__.py', or a module that Python finds. This runs its code.
    """
    call = context.ensure_object(Call)
    status = run_async(_check, call, _spec(target), options)
    errors = [each for each in status.diagnostics if each.severity == "error"]
    warnings = tuple(each for each in status.diagnostics if each.severity == "warning")
    if status.state == "active":
        echo_status(attrs.evolve(status, diagnostics=warnings), debug=call.debug)
    for error in errors:
        complain(error.problem, error.remedy, place=error.place, traceback=error.traceback if call.debug else "")
    if is_wrong(status):
        context.exit(FAILED)
    also = f", with {counted(len(warnings), 'warning')}" if warnings else ""
    click.secho(f"'{one_line(status.name)}' is right{also}.", fg="green")


async def _check(call: Call, spec: PluginSpec, options: Mapping[str, JSON]) -> PluginStatus:
    from opencode_core.plugins.loader import from_spec

    name = from_spec(spec).name
    with tempfile.TemporaryDirectory(prefix="opencode-check-", ignore_cleanup_errors=True) as folder:
        async with open_host(
            call,
            plugins=[spec.text],
            config={"plugins": {name: dict(options)}} if options else {},
            entry_points=False,
            data_dir=Path(folder),
            watch=False,
        ) as host:
            commands = _commands(host, name)
            status = host.plugins.get(name)
        # A clean-up that fails is noticed while the host closes.
        diagnostics = host.plugins.get(name).diagnostics
    return attrs.evolve(status, contributions=(*status.contributions, *commands), diagnostics=diagnostics)


def _commands(host: Host, name: str) -> list[str]:
    """Asks for commands as the command line would, and returns them as contributions."""
    for plugin, hooks, options in host.plugins.implementing(HOOK, host.location):
        try:
            return [f"command line: {command}" for command in sorted(commands_of(plugin, hooks, options))]
        except PluginError as error:
            host.plugins.report(name, error)
    return []


def _spec(target: str) -> PluginSpec:
    """Returns what is meant: a path of this shell wherever one fits, else a module.

    Raises:
        PluginNotFoundError: It is a path, and no plugin is there.
    """
    from opencode_core.config import PluginSpec

    here = Path.cwd()
    spec = PluginSpec(text=target, base=here, origin="the command line")
    path = spec.path or here / target
    is_there = (path.is_file() and path.suffix == ".py") or (path / "__init__.py").is_file()
    if is_there:
        return attrs.evolve(spec, text=os.path.abspath(path))
    if spec.path is None and not target.startswith("pip:"):
        return spec
    what = "is not a plugin" if path.exists() else "does not exist"
    raise PluginNotFoundError(
        f"'{target}' {what}.",
        "Name a '.py' file, a folder with an '__init__.py', or a module that is installed.",
        plugin=target,
    )
