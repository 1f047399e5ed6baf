"""Tells what was recorded to somebody slow, in order, without holding up who records it. Loses nothing on the way.

The bus waits for nobody, and a subscription that reads too slowly fails. Here what was not told yet waits, however much
it is, because it is no more than what the store holds already.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import attrs

from opencode_core.model.event.base import Event, Recorded


@attrs.define(eq=False, repr=False)
class Teller:
    """A queue of recorded events, and who is told of them.

    Args:
        tell: Tells one event; isolates and bounds whoever hears it.
        is_wanted: Whether anybody would hear it at all.
    """

    _tell: Callable[[Event], Awaitable[None]]
    _is_wanted: Callable[[], bool]
    _untold: deque[Recorded] = attrs.field(init=False, factory=deque)
    _wake: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _turn: anyio.Lock = attrs.field(init=False, factory=anyio.Lock)

    def hear(self, event: Event) -> None:
        """Takes what was published, and keeps what is durable until it is told."""
        if isinstance(event, Recorded) and self._is_wanted():
            self._untold.append(event)
            self._wake.set()

    async def run(self) -> None:
        """Tells what comes, until it is cancelled; what it has begun to tell is told to its end."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._untold:
                with anyio.CancelScope(shield=True):
                    await self._tell_next()
                await anyio.lowlevel.checkpoint()

    async def drain(self, deadline: float) -> None:
        """Tells what is left, also while being cancelled, for so many seconds at most."""
        with anyio.move_on_after(deadline, shield=True):
            while self._untold:
                await self._tell_next()
        if self._untold:
            logging.getLogger("opencode.storage").warning(
                "%d events were not told to plugins before the host closed.", len(self._untold)
            )
            self._untold.clear()

    async def _tell_next(self) -> None:
        async with self._turn:
            if self._untold:
                await self._tell(self._untold[0])
                self._untold.popleft()
