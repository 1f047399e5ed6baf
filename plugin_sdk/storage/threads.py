"""Carries results from threads to the event loop, by the port's law of cancellation. Runs no work of its own."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
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
        self.soon(ready[0]._wake if len(ready) == 1 else partial(_wake_all, ready))


def _wake_all(outcomes: Iterable[Outcome[Any]]) -> None:
    for outcome in outcomes:
        outcome._wake()


@attrs.define(eq=False, repr=False)
class Outcome(Generic[R]):
    """What one job in another thread came to.

    The thread calls `begin`, and leaves the job alone if that is False: it was withdrawn. Then it calls `succeed` or
    `fail`, and afterwards `EventLoop.deliver`.
    """

    _state: str = attrs.field(init=False, default="waiting")
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _is_ready: bool = attrs.field(init=False, default=False)
    _waiting: list[Callable[[], object]] = attrs.field(init=False, factory=list)
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
            await self._woken()
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
        self._is_ready = True
        for wake in self._waiting:
            wake()

    async def _woken(self) -> None:
        """Waits for `_wake`, each time for something of its own: cancelling one who waits must not wake the others."""
        if self._is_ready:
            await anyio.lowlevel.checkpoint()
        elif (task := _asyncio_task()) is not None:
            future = task.get_loop().create_future()  # cheaper than an event
            self._waiting.append(partial(_resolve, future))
            await future
        else:
            event = anyio.Event()
            self._waiting.append(event.set)
            await event.wait()

    async def _settled(self) -> None:
        while not self._is_ready:
            # Asyncio's own cancel() passes through the shield.
            with anyio.CancelScope(shield=True), suppress(anyio.get_cancelled_exc_class()):
                await self._woken()


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


def _asyncio_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # trio runs
        return None


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():  # else who waited for it was cancelled
        future.set_result(None)


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
