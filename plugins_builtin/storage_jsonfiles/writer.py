"""Runs transactions one after the other, and commits all that wait in one go. Knows no event loop's tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from plugin_sdk.storage import EventLoop, Key, Outcome, StorageUnavailableError, Transaction, Wakes
from plugins_builtin.storage_jsonfiles.access import Access
from plugins_builtin.storage_jsonfiles.changes import Overlay, flattened, lay_over
from plugins_builtin.storage_jsonfiles.jobs import Crew
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.transactions import Writing
from plugins_builtin.storage_jsonfiles.watching import Watch

_LARGEST_GROUP = 128


@attrs.frozen(eq=False)
class Order:
    """A transaction that somebody waits for."""

    work: Callable[[Transaction], Any]
    outcome: Outcome[Any]


@attrs.define(eq=False, repr=False)
class Writer:
    """The one thread of this process that writes to a store."""

    _access: Access
    _loop: EventLoop
    _wakes: Wakes
    _watch: Watch
    _crew: Crew[Order] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._crew = Crew("jsonfiles writer", 1, self._write, self._deliver, _LARGEST_GROUP)

    def submit(self, order: Order) -> None:
        """Hands a transaction over; only from the thread of the event loop."""
        self._crew.submit(order)

    def finish(self) -> None:
        """Returns when everything that was handed over is done."""
        self._crew.finish()

    def _write(self, orders: list[Order]) -> None:
        refused: list[Order] = []
        written: Overlay = {}
        try:
            ledger = self._access.ledger(make=True)
            with ledger.writing():
                orders += self._crew.waiting()
                written = self._worked(ledger, orders, refused)
                if written:
                    self._commit(ledger, written)
        except BaseException as error:
            written = {}
            for order in orders:
                if order not in refused:
                    order.outcome.fail(error)
        self._tell(written)

    def _commit(self, ledger: Ledger, written: Overlay) -> None:
        generation = ledger.generation() + 1
        self._watch.committed(generation)  # before anybody else can see it
        try:
            ledger.commit(list(flattened(written)))
        except BaseException as error:
            self._watch.failed(generation)
            if isinstance(error, StorageUnavailableError) and error.outcome_unknown:
                self._loop.soon(self._wakes.wake_all)
            raise

    def _worked(self, ledger: Ledger, orders: list[Order], refused: list[Order]) -> Overlay:
        together: Overlay = {}
        for order in orders:
            if not order.outcome.begin():
                continue
            transaction = Writing(ledger.files, together)
            try:
                order.outcome.succeed(order.work(transaction))
            except BaseException as error:
                order.outcome.fail(error)
                refused.append(order)
            else:
                lay_over(together, flattened(transaction.written))
            finally:
                transaction.end()
        return together

    def _deliver(self, orders: list[Order]) -> None:
        self._loop.deliver(order.outcome for order in orders)

    def _tell(self, written: Overlay) -> None:
        keys: list[tuple[str, Key]] = [(change.table, change.key) for change in flattened(written)]
        if keys:
            self._loop.soon(lambda: self._wakes.wake(keys))
