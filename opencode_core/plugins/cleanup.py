"""Runs clean-ups, each under a deadline that nobody can talk it out of. Knows no plugin."""

from __future__ import annotations

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
    error: Exception | None


async def run_cleanups(cleanups: Iterable[Cleanup], *, deadline: float) -> list[CleanupFault]:
    """Runs every clean-up, also when the caller is cancelled, and returns those that raised or overran."""
    faults = []
    for cleanup in cleanups:
        fault = await _run(cleanup, deadline)
        if fault is not None:
            faults.append(fault)
    return faults


async def _run(cleanup: Cleanup, deadline: float) -> CleanupFault | None:
    name = getattr(cleanup, "__qualname__", None) or repr(cleanup)
    with anyio.move_on_after(deadline, shield=True):
        try:
            if inspect.iscoroutinefunction(cleanup):
                await cleanup()
            else:
                result = await _in_daemon_thread(cleanup)
                if inspect.isawaitable(result):
                    await result
        except Exception as error:
            return CleanupFault(name, error)
        return None
    return CleanupFault(name, None)


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
