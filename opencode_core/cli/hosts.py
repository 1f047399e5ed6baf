"""Opens hosts for commands. What plugins print while they load goes to stderr, and faults are not logged twice."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from opencode_core.cli.call import Call

if TYPE_CHECKING:
    from opencode_core.host import Host

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_async(function: Callable[[Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
    """Runs an async function so that Ctrl-C ends it at once, even where a plugin blocks the event loop."""
    import anyio

    if threading.current_thread() is not threading.main_thread():
        return anyio.run(function, *args)
    # Any other handler than the default keeps asyncio from asking the blocked loop to cancel, and waiting.
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        return anyio.run(function, *args)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


@asynccontextmanager
async def open_host(call: Call, **settings: Any) -> AsyncIterator[Host]:
    """Opens a host in the directory of this run.

    Raises:
        OpencodeError: The directory, the configuration or, in strict mode, a plugin is wrong.
    """
    from opencode_core.host import Host

    hear_log(call)
    with redirect_stdout(sys.stderr):
        async with Host.open(call.directory, **settings) as host:
            yield host


@contextmanager
def keep_host_open(call: Call) -> Iterator[Host]:
    """Opens a host on a thread of its own, so that commands run on the main thread and may start event loops.

    Raises:
        OpencodeError: The directory, the configuration or, in strict mode, a plugin is wrong.
    """
    from anyio.from_thread import start_blocking_portal

    from opencode_core.host import Host

    hear_log(call)
    with start_blocking_portal() as portal:
        manager = portal.wrap_async_context_manager(Host.open(call.directory))
        with redirect_stdout(sys.stderr):
            host = manager.__enter__()
        try:
            yield host
        finally:
            with redirect_stdout(sys.stderr):
                manager.__exit__(None, None, None)


def hear_log(call: Call) -> None:
    """Shows the log with ``--debug`` only: commands show diagnostics themselves."""
    if call.debug:
        logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    elif not (log := logging.getLogger("opencode")).handlers:
        log.addHandler(logging.NullHandler())


def hosts_folder() -> Path:
    """Returns where running hosts can be reached."""
    from opencode_core.host import data_folder

    return data_folder(os.environ) / "hosts"
