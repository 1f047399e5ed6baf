"""Runs jobs for an event loop in threads of its own, as many as are needed up to a limit. Knows no store."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class Crew(Generic[T]):
    """Threads that take jobs from one queue.

    Attributes:
        name: The name of the threads, for people.
        most: How many there may be.
    """

    name: str
    most: int
    _work: Callable[[list[T]], None]
    _deliver: Callable[[list[T]], None]
    _largest_group: int = 1
    _jobs: queue.SimpleQueue[Any] = attrs.field(init=False, factory=queue.SimpleQueue)
    _threads: list[threading.Thread] = attrs.field(init=False, factory=list)
    _unfinished: int = attrs.field(init=False, default=0)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)

    def submit(self, job: T) -> None:
        """Hands a job over; only from the thread of the event loop."""
        with self._lock:
            self._unfinished += 1
            is_needed = len(self._threads) < min(self.most, self._unfinished)
        self._jobs.put((job,))
        if is_needed:
            thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def waiting(self) -> list[T]:
        """Returns jobs that came meanwhile, for the thread that asks to do in one go."""
        more: list[T] = []
        while len(more) < self._largest_group:
            try:
                taken = self._jobs.get_nowait()
            except queue.Empty:
                break
            if taken is None:
                self._jobs.put(None)
                break
            more.append(taken[0])
        return more

    def finish(self) -> None:
        """Returns when every job that was handed over is done and every thread has ended."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        while (taken := self._jobs.get()) is not None:
            group = [taken[0]]
            self._work(group)
            with self._lock:
                self._unfinished -= len(group)
            self._deliver(group)
