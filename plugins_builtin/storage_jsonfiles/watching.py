"""Notices what other processes commit, while somebody waits for it. Reads no document.

A thread looks at the count of commits, every 5 milliseconds after a change and less and less often, down to every 100,
when there is none.
"""

from __future__ import annotations

import threading
from typing import TypeAlias

import attrs

from plugin_sdk.storage import EventLoop, StorageError, Wakes
from plugins_builtin.storage_jsonfiles.access import Access

Trace: TypeAlias = tuple[int, int]

_SHORTEST, _LONGEST, _SLOWER = 0.005, 0.1, 1.5
_FEW = 1_000


@attrs.define(eq=False, repr=False)
class Watch:
    """The thread that looks, which exists only while somebody waits."""

    _access: Access
    _loop: EventLoop
    _wakes: Wakes
    _waiting: int = attrs.field(init=False, default=0)
    _stop: threading.Event = attrs.field(init=False, factory=threading.Event)
    _threads: list[threading.Thread] = attrs.field(init=False, factory=list)
    _own: set[int] = attrs.field(init=False, factory=set)

    def enter(self) -> None:
        """Begins to look; every commit from now on is noticed.

        Raises:
            StorageError: The count of commits cannot be read.
        """
        if not self._waiting:
            self._start()
        self._waiting += 1  # last, so that who could not enter does not count

    def leave(self) -> None:
        """Ends what `enter` began, and the looking with the last one."""
        self._waiting -= 1
        if not self._waiting:
            self._stop.set()

    def committed(self, generation: int) -> None:
        """Is told of a commit of this process, whose waiters are woken by others; from the writer's thread."""
        if self._waiting:
            self._own.add(generation)

    def failed(self, generation: int) -> None:
        """Is told that a commit never happened, so its number is that of the next one, whoever's it is."""
        self._own.discard(generation)

    def finish(self) -> None:
        """Returns when the thread has ended; nobody may enter any more."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        stop, seen = threading.Event(), self._access.trace()
        thread = threading.Thread(target=self._look, args=(stop, seen), name="jsonfiles watch", daemon=True)
        thread.start()
        self._stop = stop
        self._threads = [*(known for known in self._threads if known.is_alive()), thread]

    def _look(self, stop: threading.Event, seen: Trace) -> None:
        pause, before = _SHORTEST, seen
        while not stop.wait(pause):
            now = self._trace() or seen
            # A journal that grew without being counted is a commit under way; if it stays so, its process died.
            if now == seen or (now[0] == seen[0] and now != before):
                pause = min(pause * _SLOWER, _LONGEST)
            else:
                pause = _SHORTEST
                if self._is_foreign(seen, now):
                    self._loop.soon(self._wakes.wake_all)
                seen = now
            before = now

    def _trace(self) -> Trace | None:
        try:
            self._access.ledger()  # which may be another one by now
            return self._access.trace()
        except StorageError:  # whoever is woken would only meet it again
            return None

    def _is_foreign(self, seen: Trace, now: Trace) -> bool:
        if not 0 < now[0] - seen[0] <= _FEW:
            self._own.clear()
            return True
        news = set(range(seen[0] + 1, now[0] + 1))
        is_foreign = not news <= self._own
        self._own.difference_update(news)
        return is_foreign
