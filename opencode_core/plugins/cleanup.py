"""Runs clean-ups, each under a deadline. Knows no plugin.

Only one that shields itself from cancellation outstays it: what runs in the event loop cannot be abandoned.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import attrs

from opencode_core.ports.scope import Cleanup


@attrs.frozen
class CleanupFault:
    """A clean-up that did not work.

    Attributes:
        cleanup: Its name.
        error: What it raised; None when it did not return in time.
    """

    cleanup: str
    error: BaseException | None


async def run_cleanups(cleanups: Iterable[Cleanup], *, deadline: float) -> list[CleanupFault]:
    """Runs every clean-up, also when the caller is cancelled, and returns those that raised or overran."""
    faults = []
    for cleanup in cleanups:
        fault = await _run(cleanup, deadline)
        if fault is not None:
            faults.append(fault)
    return faults


async def _run(cleanup: Cleanup, deadline: float) -> CleanupFault | None:
    """Runs one clean-up in a task of its own, so that one that awaits what it cancelled ends nobody else."""
    raised: list[BaseException] = []

    async def run() -> None:
        try:
            await _call(cleanup)
        except (Exception, SystemExit) as error:
            raised.append(error)

    with anyio.move_on_after(deadline, shield=True) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
    if raised:
        return CleanupFault(_name(cleanup), raised[0])
    return CleanupFault(_name(cleanup), None) if scope.cancelled_caught else None


async def _call(cleanup: Cleanup) -> None:
    result = cleanup() if inspect.iscoroutinefunction(cleanup) else await _in_daemon_thread(cleanup)
    if inspect.isawaitable(result):
        await result


def _name(cleanup: object) -> str:
    """Returns what it is called in messages: never its arguments, which may be secrets."""
    while isinstance(cleanup, functools.partial):
        cleanup = cleanup.func
    return getattr(cleanup, "__qualname__", None) or type(cleanup).__qualname__


async def _in_daemon_thread(function: Callable[[], Any]) -> Any:
    """Runs a plain function in a thread that the interpreter does not wait for when it exits.

    anyio's worker threads are waited for, so a clean-up that never returns would hold up the exit of the process.
    """
    done, token, outcome = anyio.Event(), anyio.lowlevel.current_token(), {}

    def run() -> None:
        try:
            outcome["value"] = function()
        except BaseException as error:
            outcome["error"] = error
        try:
            anyio.from_thread.run_sync(done.set, token=token)
        except Exception:  # the event loop has moved on or is gone: nobody waits for this thread any more
            return

    threading.Thread(target=run, name="opencode-cleanup", daemon=True).start()
    await done.wait()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
