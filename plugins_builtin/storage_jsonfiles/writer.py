"""Runs transactions one after the other, and commits all that wait in one go. Knows no event loop's tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from plugin_sdk.storage import EventLoop, Key, Outcome, Transaction, Wakes
from plugins_builtin.storage_jsonfiles.changes import Overlay, flattened, lay_over
from plugins_builtin.storage_jsonfiles.jobs import Crew
from plugins_builtin.storage_jsonfiles.ledger import Ledger
from plugins_builtin.storage_jsonfiles.transactions import Writing

_LARGEST_GROUP = 128


@attrs.frozen(eq=False)
class Order:
    """A transaction that somebody waits for."""

    work: Callable[[Transaction], Any]
    outcome: Outcome[Any]


@attrs.define(eq=False, repr=False)
class Writer:
    """The one thread of this process that writes to a store.

    Attributes:
        committed: Is told the number of each commit of this process, before anybody else can see it.
    """

    _ledger: Ledger
    _loop: EventLoop
    _wakes: Wakes
    _committed: Callable[[int], None]
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
            with self._ledger.writing():
                orders += self._crew.waiting()
                written = self._worked(orders, refused)
                if written:
                    self._committed(self._ledger.generation() + 1)
                    self._ledger.commit(list(flattened(written)))
        except BaseException as error:
            written = {}
            for order in orders:
                if order not in refused:
                    order.outcome.fail(error)
        self._tell(written)

    def _worked(self, orders: list[Order], refused: list[Order]) -> Overlay:
        together: Overlay = {}
        for order in orders:
            if not order.outcome.begin():
                continue
            transaction = Writing(self._ledger.files, together)
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
