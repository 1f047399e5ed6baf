"""One run of the command line: what the global options say, and the host that plugins' commands need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

if TYPE_CHECKING:
    from opencode_core.host import Host

F = TypeVar("F", bound=Callable[..., Any])

PROGRAM = "opencode-core"


@attrs.frozen
class PluginCommand:
    """A command, and the plugin that added it."""

    plugin: str
    command: click.Command


@attrs.define(eq=False)
class Call:
    """One run of the command line.

    Attributes:
        directory: Where sessions would run.
        debug: Whether tracebacks are shown.
        running: The command of a plugin that runs, and the plugin; None for the program's own.
        open: What is closed when the run ends.
        host: The host that the commands of plugins need; None until they are needed.
        commands: The commands of plugins by name; None until they are needed.
    """

    directory: Path = attrs.field(factory=Path)
    debug: bool = False
    running: tuple[str, str] | None = None
    open: ExitStack = attrs.field(factory=ExitStack)
    host: Host | None = None
    commands: Mapping[str, PluginCommand] | None = None


pass_call = click.make_pass_decorator(Call)


def global_options(function: F) -> F:
    """Adds ``--debug`` and ``--directory``; they are eager, so that ``--help`` and errors know them."""
    for option in (_debug(hidden=False), _directory(hidden=False)):
        function = option(function)
    return function


def here_too(function: F) -> F:
    """Lets people write the global options after the command as well."""
    for option in (_debug(hidden=True), _directory(hidden=True)):
        function = option(function)
    return function


def _debug(*, hidden: bool) -> Callable[[F], F]:
    return click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=hidden,
        help="Show tracebacks.",
        callback=_set_debug,
    )


def _directory(*, hidden: bool) -> Callable[[F], F]:
    return click.option(
        "-C",
        "--directory",
        "work_in",
        metavar="DIR",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        hidden=hidden,
        help="Work in this directory instead of the current one.",
        callback=_set_directory,
    )


def _set_debug(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Call).debug = True


def _set_directory(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.ensure_object(Call).directory = value
