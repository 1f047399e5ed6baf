"""What a caller asks of a thread, and the outcome it waits for, whoever cancels it. Knows no database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from plugin_sdk.storage import EventLoop, Outcome

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class Job(Generic[T]):
    """Some work on a ``T``, and what it came to."""

    work: Callable[[T], Any]
    outcome: Outcome[Any] = attrs.field(init=False, factory=Outcome)


@attrs.define(eq=False, repr=False)
class Errand:
    """A function that runs in a thread of its own from now on; no cancellation leaves it behind."""

    _function: Callable[[], None]
    _loop: EventLoop
    _outcome: Outcome[None] = attrs.field(init=False, factory=Outcome)
    _thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._outcome.begin()
        # A daemon, like those that it may have to wait for.
        self._thread = threading.Thread(target=self._run, name="opencode-sqlite-errand", daemon=True)
        self._thread.start()

    async def wait(self) -> None:
        """Returns when the function has, and its thread is gone; any number may wait."""
        try:
            await self._outcome.wait()
        finally:
            self._thread.join()  # it has delivered, so there is nothing left to wait for

    def _run(self) -> None:
        try:
            self._function()
            self._outcome.succeed(None)
        except BaseException as error:  # whatever it is, it belongs to the caller
            self._outcome.fail(error)
        self._loop.deliver((self._outcome,))
