"""Carries results from threads to the event loop, by the port's law of cancellation. Runs no work of its own."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import attrs

__all__ = ["Errand", "EventLoop", "Outcome"]

R = TypeVar("R")


@attrs.define(eq=False, repr=False, init=False)
class EventLoop:
    """The event loop that this was made in, reached from other threads."""

    _call: Callable[[Callable[[], object]], object]

    def __init__(self) -> None:
        native: Any = anyio.lowlevel.current_token().native_token
        self._call = native.run_sync_soon if hasattr(native, "run_sync_soon") else native.call_soon_threadsafe

    def soon(self, call: Callable[[], object]) -> None:
        """Calls back in the event loop, soon and in order; not at all when it has ended."""
        try:
            self._call(call)
        except RuntimeError:  # both event loops say so when they have ended; nobody waits any more
            return

    def deliver(self, outcomes: Iterable[Outcome[Any]]) -> None:
        """Wakes those that wait for these outcomes, all in one call."""
        ready = tuple(outcomes)

        def wake() -> None:
            for outcome in ready:
                outcome._wake()

        self.soon(wake)


@attrs.define(eq=False, repr=False)
class Outcome(Generic[R]):
    """What one job in another thread came to.

    The thread calls `begin`, and leaves the job alone if that is False: it was withdrawn. Then it calls `succeed` or
    `fail`, and afterwards `EventLoop.deliver`.
    """

    _state: str = attrs.field(init=False, default="waiting")
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _ready: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _value: R = attrs.field(init=False)
    _error: BaseException | None = attrs.field(init=False, default=None)

    def begin(self) -> bool:
        """Takes the job, unless it was withdrawn; may be called again when the job is run again."""
        with self._lock:
            if self._state == "withdrawn":
                return False
            self._state = "begun"
            return True

    def succeed(self, value: R) -> None:
        """Keeps the result."""
        self._value = value

    def fail(self, error: BaseException) -> None:
        """Keeps the error."""
        self._error = error

    async def wait(self) -> R:
        """Returns the result when it is there, or raises the error.

        A cancelled wait withdraws a job that nobody began, and waits for one that was begun: then the result is
        returned or the error raised, and the cancellation comes at the caller's next checkpoint.
        """
        try:
            await self._ready.wait()
        except anyio.get_cancelled_exc_class():
            if self._withdraw():
                raise
            await self._settled()
            _cancel_again()
        if self._error is not None:
            raise self._error
        return self._value

    def _withdraw(self) -> bool:
        with self._lock:
            if self._state == "waiting":
                self._state = "withdrawn"
            return self._state == "withdrawn"

    def _wake(self) -> None:
        self._ready.set()

    async def _settled(self) -> None:
        while not self._ready.is_set():
            # Asyncio's own cancel() passes through the shield.
            with anyio.CancelScope(shield=True), suppress(anyio.get_cancelled_exc_class()):
                await self._ready.wait()


@attrs.define(eq=False, repr=False)
class Errand(Generic[R]):
    """A function that runs in a thread of its own from now on; no cancellation leaves it behind.

    So a store is opened and closed: whoever cancels the caller, what was begun ends before the caller goes on.
    """

    _function: Callable[[], R]
    _loop: EventLoop
    _outcome: Outcome[R] = attrs.field(init=False, factory=Outcome)
    _thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._outcome.begin()
        # A daemon, like those that it may have to wait for.
        self._thread = threading.Thread(target=self._run, name="opencode-storage-errand", daemon=True)
        self._thread.start()

    async def wait(self) -> R:
        """Returns what the function returned, or raises what it raised, when its thread is gone; for any number."""
        try:
            return await self._outcome.wait()
        finally:
            self._thread.join()  # it has delivered, so there is nothing left to wait for

    def _run(self) -> None:
        try:
            self._outcome.succeed(self._function())
        except BaseException as error:  # whatever it is, it belongs to the caller
            self._outcome.fail(error)
        self._loop.deliver((self._outcome,))


def _cancel_again() -> None:
    """Sees to it that a cancellation which was held back comes at the next checkpoint."""
    if anyio.current_effective_deadline() == -math.inf:
        return  # a cancelled scope says so again by itself
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        # Not now: who asked may take it back before the next checkpoint, as the end of an asyncio.timeout() does.
        asyncio.get_running_loop().call_soon(_cancel_if_still_asked, task)


def _cancel_if_still_asked(task: asyncio.Task[Any]) -> None:
    if task.cancelling():
        task.uncancel()
        task.cancel()
