"""Runs a store's works in threads: views side by side, transactions one group after the other. Opens no connection.

Transactions that wait while another group commits become the next group, in one transaction of the server: they share
its commit, and those of one process never collide with each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from plugin_sdk.storage import EventLoop, Outcome, StorageUnavailableError
from plugins_builtin.storage_postgres.running import Result, Runner, Work
from plugins_builtin.storage_postgres.writes import Write

_LARGEST_GROUP = 64


@attrs.define(eq=False, repr=False)
class Jobs:
    """The threads of a store. Used from the event loop."""

    _runner: Runner
    _loop: EventLoop
    _announce: Callable[[Sequence[Write] | None], None]
    _views: ThreadPoolExecutor
    _writer: ThreadPoolExecutor = attrs.field(
        init=False, factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="storage-postgres-writer")
    )
    _waiting: deque[_Job] = attrs.field(init=False, factory=deque)

    def call(self, function: Callable[[], Any]) -> Outcome[Any]:
        """Runs a function beside the views."""
        outcome: Outcome[Any] = Outcome()
        self._views.submit(self._called, function, outcome)
        return outcome

    def view(self, work: Work) -> Outcome[Any]:
        """Runs a work that only reads."""

        def viewed() -> Any:
            [result], _ = self._runner.run([work], read_only=True)
            if result.error is not None:
                raise result.error
            return result.value

        return self.call(viewed)

    def transact(self, work: Work) -> Outcome[Any]:
        """Runs a work that writes, with the next group."""
        job = _Job(work)
        self._waiting.append(job)
        self._writer.submit(self._next_group)
        return job.outcome

    def finish(self) -> None:
        """Returns when everything that was handed over is done and the threads are gone."""
        self._writer.shutdown()
        self._views.shutdown()

    def _called(self, function: Callable[[], Any], outcome: Outcome[Any]) -> None:
        if not outcome.begin():
            return
        try:
            outcome.succeed(function())
        except BaseException as error:
            outcome.fail(error)
        self._loop.deliver([outcome])

    def _next_group(self) -> None:
        group: list[_Job] = []
        while self._waiting and len(group) < _LARGEST_GROUP:
            job = self._waiting.popleft()
            if job.outcome.begin():
                group.append(job)
        if group:
            self._settle(group)

    def _settle(self, group: Sequence[_Job]) -> None:
        try:
            results, written = self._runner.run([job.work for job in group])
        except StorageUnavailableError as error:
            for job in group:
                job.outcome.fail(_retold(error))
            if error.outcome_unknown:
                self._announce(None)
        except BaseException as error:
            if len(group) > 1:  # one of them is the cause: the others need not suffer
                for job in group:
                    self._settle([job])
                return
            group[0].outcome.fail(error)
        else:
            for job, result in zip(group, results, strict=True):
                job.settle(result)
            self._announce(written)
        self._loop.deliver([job.outcome for job in group])


@attrs.define(eq=False, repr=False)
class _Job:
    work: Work
    outcome: Outcome[Any] = attrs.field(init=False, factory=Outcome)

    def settle(self, result: Result) -> None:
        if result.error is not None:
            self.outcome.fail(result.error)
        else:
            self.outcome.succeed(result.value)


def _retold(error: StorageUnavailableError) -> StorageUnavailableError:
    """Returns the same error once more, because each caller adds its own traceback."""
    copy = StorageUnavailableError(error.problem, error.remedy, outcome_unknown=error.outcome_unknown)
    copy.__cause__ = error.__cause__
    return copy


def started_views(threads: int) -> ThreadPoolExecutor:
    """Returns the threads in which views run."""
    return ThreadPoolExecutor(threads, thread_name_prefix="storage-postgres-view")
