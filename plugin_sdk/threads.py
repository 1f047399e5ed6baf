"""Runs functions that block in threads, and begins none while too many that were given up have not returned.

A thread cannot be ended. So when a function hangs, for example on a disk that is gone, every boundary would leave one
more behind; here a few are left, and no other is begun until one of them returns. Those that are left do not keep the
process from ending. Takes no thread from anybody else.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import attrs

if TYPE_CHECKING:
    from plugin_sdk.storage.threads import EventLoop  # with asyncio, which takes its time

__all__ = ["BoundedThreads"]

T = TypeVar("T")

GIVEN_UP = 4
"""How many calls may still run that were given up, until no other is begun."""

AT_ONCE = 40
"""How many calls run at a time; more wait for their turn."""


@attrs.frozen(eq=False)
class BoundedThreads:
    """The threads in which one plugin does one kind of blocking work; make one, and keep it.

    Whoever stops waiting for a call gives it up. It goes on, and nobody learns what it returns.
    """

    _given_up: set[_Call[Any]] = attrs.field(init=False, factory=set)
    _places: anyio.CapacityLimiter = attrs.field(init=False, factory=lambda: anyio.CapacityLimiter(AT_ONCE))

    async def run(self, function: Callable[[], T]) -> T:
        """Calls a function in a thread, and returns what it does.

        Args:
            function: The function.

        Raises:
            TimeoutError: Too many earlier calls were given up and have not returned yet; this one was not begun.
        """
        from plugin_sdk.storage.threads import EventLoop

        self._given_up.difference_update([each for each in self._given_up if each.has_returned])
        if len(self._given_up) >= GIVEN_UP:
            raise TimeoutError(f"{len(self._given_up)} earlier calls of its function have not returned yet")
        async with self._places:
            call = _Call(function, EventLoop())
            call.begin()
            try:
                await call.returned.wait()
            except anyio.get_cancelled_exc_class():
                self._given_up.add(call)
                raise
            return call.answer()


@attrs.define(eq=False)
class _Call(Generic[T]):
    """One call, in a thread of its own."""

    _function: Callable[[], T]
    _loop: EventLoop
    returned: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    has_returned: bool = attrs.field(init=False, default=False)
    _value: T = attrs.field(init=False)
    _error: BaseException | None = attrs.field(init=False, default=None)

    def begin(self) -> None:
        context = contextvars.copy_context()
        # A daemon, so that a function that never returns does not keep the process from ending.
        threading.Thread(target=context.run, args=(self._run,), name="opencode-plugin", daemon=True).start()

    def answer(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:  # whatever it is, it belongs to the caller
            self._error = error
        self.has_returned = True
        self._loop.soon(self.returned.set)
