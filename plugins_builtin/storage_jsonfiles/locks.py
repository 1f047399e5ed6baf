"""Lets many read or one write, across processes and threads. Reads and writes nothing itself.

Everybody passes a gate on the way to the lock and holds it until the lock is theirs. So a writer waits only for those
who read already, however many more come, and a reader only for the one who writes.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import attrs

from plugin_sdk.storage import StorageBusyError
from plugins_builtin.storage_jsonfiles.failures import translated

_GATE, _LOCK, _USERS = "gate", "lock", "users"
_SHORTEST, _LONGEST = 0.000_1, 0.005


@attrs.define(eq=False, repr=False)
class Locks:
    """The locks of one store.

    Attributes:
        place: The store, for messages.
        timeout: How many seconds somebody waits.
    """

    place: str
    timeout: float
    _books: int
    _users: int = attrs.field(init=False, default=-1)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Keeps writers out.

        Raises:
            StorageBusyError: A writer held the lock for too long.
        """
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keeps everybody else out.

        Raises:
            StorageBusyError: Others held the lock for too long.
        """
        with self._held(fcntl.LOCK_EX):
            yield

    def enroll(self) -> None:
        """Tells other processes, until `close`, that the store is in use.

        Raises:
            StorageBusyError: Somebody is just closing the store, and takes too long.
        """
        with translated(self.place):
            self._users = self._opened(_USERS)
        self._wait(self._users, fcntl.LOCK_SH, time.monotonic() + self.timeout)

    def is_last(self) -> bool:
        """Whether nobody else uses the store; if so, nobody can begin to before `close`."""
        return self._users >= 0 and self._taken(self._users, fcntl.LOCK_EX)

    def is_alone(self) -> bool:
        """Whether nobody else uses the store at this moment.

        Raises:
            StorageBusyError: Somebody began to use it meanwhile, and takes too long.
        """
        if not self.is_last():
            return False
        self._wait(self._users, fcntl.LOCK_SH, time.monotonic() + self.timeout)
        return True

    def close(self) -> None:
        """Undoes `enroll`, and lets every file go; once."""
        if self._users >= 0:
            self._users = _released(self._users)
        os.close(self._books)

    @contextmanager
    def _held(self, mode: int) -> Iterator[None]:
        deadline = time.monotonic() + self.timeout
        lock = -1
        try:
            with translated(self.place):
                lock = self._opened(_LOCK)
                gate = self._opened(_GATE)
            try:
                self._wait(gate, mode, deadline)
                self._wait(lock, mode, deadline)
            finally:
                _released(gate)
            yield
        finally:
            if lock >= 0:
                _released(lock)

    def _opened(self, name: str) -> int:
        try:
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._books)
        except FileNotFoundError:
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._books)

    def _wait(self, descriptor: int, mode: int, deadline: float) -> None:
        pause = _SHORTEST
        while not self._taken(descriptor, mode):
            if time.monotonic() >= deadline:
                raise StorageBusyError(
                    f"Somebody else held the store '{self.place}' for more than {self.timeout:g} seconds.",
                    "Try again, or find the process that uses it.",
                )
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST)

    def _taken(self, descriptor: int, mode: int) -> bool:
        # There is no flock with a time limit, and a thread that waits without one could never be ended.
        with translated(self.place), suppress(BlockingIOError):
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            return True
        return False


def _released(descriptor: int) -> int:
    # Said explicitly, because a process forked meanwhile may hold the descriptor too.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    return -1
