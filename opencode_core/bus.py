"""Hands live values to whoever listens now. Stores nothing, and waits for nobody.

A bus belongs to one event loop. Publishing from another thread is not supported: go through
``anyio.from_thread.run_sync``.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar, overload
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel
import attrs

from opencode_core.errors import SubscriberOverflowError

__all__ = ["Bus", "Subscription"]

T = TypeVar("T")
E = TypeVar("E")


@attrs.define(eq=False, repr=False)
class Bus(Generic[T]):
    """Delivers each event to every subscription and listener of this moment.

    Args:
        on_error: Told of a listener that raised: the listener, the event, the exception. Logs by default.
        inside: Returns what an event carries, by whose type a subscription can choose it too; itself by default.
    """

    _on_error: Callable[[Callable[[T], object], T, Exception], object] = attrs.field(factory=lambda: _log)
    _inside: Callable[[T], object] = attrs.field(default=lambda event: event)
    # Weak, so that a subscription nobody holds any more is not fed for ever.
    _subscriptions: WeakValueDictionary[int, Subscription[Any]] = attrs.field(init=False, factory=WeakValueDictionary)
    _listeners: dict[int, tuple[Callable[[T], object], tuple[type[Any], ...]]] = attrs.field(init=False, factory=dict)
    _undelivered: deque[tuple[T, tuple[int, ...], list[Exception] | None]] = attrs.field(init=False, factory=deque)
    _delivering: bool = attrs.field(init=False, default=False)
    _closed: bool = attrs.field(init=False, default=False)
    _numbers: itertools.count[int] = attrs.field(init=False, factory=itertools.count)

    @property
    def is_heard(self) -> bool:
        """Whether anybody would receive an event now."""
        return bool(self._listeners) or bool(self._subscriptions)

    def hears(self, kind: type[Any]) -> bool:
        """Whether anybody might receive an event of a kind, so that making one is not in vain."""
        choices = [types for _, types in self._listeners.values()]
        choices += [subscription._types for subscription in self._subscriptions.values()]
        return any(not types or any(issubclass(kind, t) or issubclass(t, kind) for t in types) for types in choices)

    def publish(self, event: T) -> None:
        """Hands the event to all subscriptions, then to all listeners in the order they came.

        Never blocks, and never fails because of a subscription or a listener. Everybody sees events in the
        order they were published: what a listener publishes reaches the listeners after the event it is
        handling. After ``close`` nobody is there to hear it.
        """
        self._hand_over(event, None)

    def publish_or_raise(self, event: T) -> None:
        """Does the same, and then raises what the first listener raised, if any did.

        A listener that publishes in this way does not see what is raised later, by listeners after it.
        """
        errors: list[Exception] = []
        self._hand_over(event, errors)
        if errors:
            raise errors[0]

    def _hand_over(self, event: T, errors: list[Exception] | None) -> None:
        inside = self._inside(event)
        for subscription in list(self._subscriptions.values()):
            subscription._offer(event, inside)
        self._undelivered.append((event, tuple(self._listeners), errors))
        if not self._delivering:
            self._call_listeners()

    @overload
    def subscribe(self, *, capacity: int = ...) -> Subscription[T]: ...

    @overload
    def subscribe(self, *types: type[E], capacity: int = ...) -> Subscription[E]: ...

    def subscribe(self, *types: type[Any], capacity: int = 256) -> Subscription[Any]:
        """Receives what is published from this call on.

        Args:
            types: Only instances of these; everything when none is given.
            capacity: How many unread events are kept before the subscription fails.

        Raises:
            ValueError: The capacity is not positive.
        """
        number = next(self._numbers)
        subscription: Subscription[Any] = Subscription(
            types=types, capacity=capacity, forget=lambda: self._forget(number)
        )
        if self._closed:
            subscription._end()
        else:
            self._subscriptions[number] = subscription
        return subscription

    def listen(self, callback: Callable[[T], object], *types: type[Any]) -> Callable[[], None]:
        """Calls back, synchronously, with what is published from now on.

        Args:
            callback: What is called.
            types: Only with instances of these; with everything when none is given.

        Returns:
            A function that ends it; calling it twice is harmless.
        """
        number = next(self._numbers)
        if not self._closed:
            self._listeners[number] = callback, types
        return lambda: self._forget_listener(number)

    def close(self) -> None:
        """Ends every subscription after what it has buffered, and lets all listeners go; harmless twice."""
        self._closed = True
        self._listeners.clear()
        for subscription in list(self._subscriptions.values()):
            subscription._end()

    def _call_listeners(self) -> None:
        self._delivering = True
        try:
            while self._undelivered:
                event, numbers, errors = self._undelivered.popleft()
                for number in numbers:
                    self._call(self._listeners.get(number), event, errors)
        finally:
            self._delivering = False
            self._undelivered.clear()

    def _call(
        self,
        listening: tuple[Callable[[T], object], tuple[type[Any], ...]] | None,
        event: T,
        errors: list[Exception] | None,
    ) -> None:
        if listening is None:  # it left while the event was under way
            return
        listener, types = listening
        if types and not isinstance(event, types) and not isinstance(self._inside(event), types):
            return
        try:
            listener(event)
        except Exception as error:
            if errors is None:
                self._report(listener, event, error)
            else:
                errors.append(error)

    def _report(self, listener: Callable[[T], object], event: T, error: Exception) -> None:
        try:
            self._on_error(listener, event, error)
        except Exception as failure:
            _log(listener, event, failure)

    def _forget(self, number: int) -> None:
        self._subscriptions.pop(number, None)

    def _forget_listener(self, number: int) -> None:
        self._listeners.pop(number, None)


@attrs.define(eq=False, repr=False, kw_only=True)
class Subscription(Generic[E]):
    """An async iterator of events, and the context manager that ends it.

    It ends when its context is left or the bus closes. One that is dropped leaves nothing behind.

    Raises:
        SubscriberOverflowError: From the iterator, after everything that was buffered before the overflow.
    """

    capacity: int = attrs.field(validator=attrs.validators.ge(1))
    _types: tuple[type[Any], ...]
    _forget: Callable[[], None]
    _buffer: deque[E] = attrs.field(init=False, factory=deque)
    _wake: anyio.Event | None = attrs.field(init=False, default=None)
    _ended: bool = attrs.field(init=False, default=False)
    _overflowed: bool = attrs.field(init=False, default=False)

    async def __aenter__(self) -> Subscription[E]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._buffer.clear()
        self._overflowed = False
        self._end()

    def __aiter__(self) -> Subscription[E]:
        return self

    async def __anext__(self) -> E:
        await anyio.lowlevel.checkpoint()
        while not self._buffer:
            if self._overflowed:
                raise self._overflow()
            if self._ended:
                raise StopAsyncIteration
            await self._woken()
        return self._buffer.popleft()

    async def _woken(self) -> None:
        if self._wake is None or self._wake.is_set():
            self._wake = anyio.Event()
        await self._wake.wait()

    def _offer(self, event: E, inside: object) -> None:
        if self._types and not isinstance(event, self._types) and not isinstance(inside, self._types):
            return
        if len(self._buffer) < self.capacity:
            self._buffer.append(event)
            self._wake_up()
        else:
            self._overflowed = True
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._forget()
        self._wake_up()

    def _wake_up(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _overflow(self) -> SubscriberOverflowError:
        return SubscriberOverflowError(
            f"A live subscriber read too slowly: it held {self.capacity} events and missed the next.",
            "Read faster, subscribe with a larger capacity, or read on from the last durable event.",
        )


def _log(listener: Callable[[Any], object], event: object, error: Exception) -> None:
    # Only the event's type is named: what it carries may be private.
    logging.getLogger("opencode.bus").exception(
        "The listener %r failed on a '%s'.", listener, type(event).__name__, exc_info=error
    )
