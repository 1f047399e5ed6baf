"""Says what went wrong in two lines: what happened, what to do. Decides nothing but the exit code."""

from __future__ import annotations

import os
import sys
from traceback import format_exception

import click

from opencode_core.cli.call import PROGRAM, Call
from opencode_core.cli.text import one_line
from opencode_core.errors import OpencodeError

FAILED, INTERRUPTED = 1, 130

SEE_TRACEBACK = "Run again with --debug to see the traceback."


def fail(error: BaseException, call: Call) -> int:
    """Tells the person about an error, and returns the exit code."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # nobody reads any more, so there is nobody to tell
        return FAILED
    what, todo = _words(error, call)
    if call.debug and todo == SEE_TRACEBACK:
        todo = "The traceback is above."
    complain(what, todo, traceback=_traceback(error) if call.debug else "")
    return error.exit_code if isinstance(error, click.ClickException) else FAILED


def complain(what: str, todo: str, *, place: object = None, traceback: str = "") -> None:
    """Prints one error: what happened and where, then what to do; before it the traceback, when it is wanted."""
    if traceback:
        click.echo(traceback.rstrip(), err=True)
    click.echo(f"Error: {_sentence(what, place)}", err=True)
    click.echo(one_line(todo) or SEE_TRACEBACK, err=True)


def warn(what: str) -> None:
    """Prints one warning, on one line."""
    click.echo(f"Warning: {one_line(what)}", err=True)


def leave_quietly() -> None:
    """Lets Python end without a complaint about a reader that went away, such as ``head``."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(what: str, place: object) -> str:
    is_said = not place or str(place) in what
    return one_line(what) if is_said else f"{one_line(what)} ({one_line(place)})"


def _words(error: BaseException, call: Call) -> tuple[str, str]:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else PROGRAM
        return error.format_message(), f"Try '{path} --help'."
    if isinstance(error, click.ClickException):
        return error.format_message(), f"Try '{PROGRAM} --help'."
    what, todo = _what_and_todo(error)
    if call.running is not None:
        command, plugin = call.running
        return f"The command '{command}' of the plugin '{plugin}' failed: {what}", todo or SEE_TRACEBACK
    if isinstance(error, OpencodeError):
        return what, todo
    return f"internal error: {what}", SEE_TRACEBACK


def _what_and_todo(error: BaseException) -> tuple[str, str]:
    if isinstance(error, OpencodeError):
        return _sentence(error.problem, error.place), error.remedy
    text = str(error)
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__), ""


def _traceback(error: BaseException) -> str:
    return "" if isinstance(error, click.ClickException) else "".join(format_exception(error))
