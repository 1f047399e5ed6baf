"""Finds the ledger that a store has now: one without books until somebody makes them. Reads no document.

Whoever only looks at a store of the first generation leaves no trace in it, so there may be no locks yet. Then nobody
keeps writers out, and what was read counts only if there were still no books when it was done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from plugins_builtin.storage_jsonfiles.books import has_books, open_ledger
from plugins_builtin.storage_jsonfiles.ledger import Ledger


@attrs.define(eq=False, repr=False)
class Access:
    """The way of all threads to the ledger of one store."""

    _ledger: Ledger
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _left: list[Ledger] = attrs.field(init=False, factory=list)

    def ledger(self, *, make: bool = False) -> Ledger:
        """Returns the ledger with the books if there are any by now.

        Args:
            make: Makes them where they are missing and can be made, because something will be written.

        Raises:
            StorageBusyError: Somebody else held the store for too long.
            StorageError: The books cannot be opened.
        """
        if self._ledger.is_bare:
            with self._lock:
                self._look_again(make=make)
        return self._ledger

    def read(self, look: Callable[[Ledger], None]) -> None:
        """Runs a function that only reads, and once more if somebody may have written meanwhile.

        Raises:
            StorageError: The books cannot be opened.
            Exception: What the function raised.
        """
        while True:
            ledger = self.ledger()
            try:
                look(ledger)
            except Exception:
                if not self._is_outdated(ledger):
                    raise
            else:
                if not self._is_outdated(ledger):
                    return

    def trace(self) -> tuple[int, int]:
        """Returns two numbers of which one changes with each commit; opens nothing.

        Raises:
            StorageError: They cannot be read.
        """
        return self._ledger.trace()

    def close(self) -> None:
        """Lets everything go; once."""
        try:
            self._ledger.close()
        finally:
            for ledger in self._left:
                ledger.close()

    def _look_again(self, *, make: bool) -> None:
        bare = self._ledger
        if not bare.is_bare or not (make or has_books(bare.files.root)):
            return
        found = open_ledger(bare.files.root, timeout=bare.locks.timeout, make=make)
        if found.is_bare:  # on a disk that is read-only, or the books were removed again
            found.close()
        else:
            self._ledger = found
            self._left.append(bare)  # other threads may still read with it

    def _is_outdated(self, ledger: Ledger) -> bool:
        return ledger.is_bare and has_books(ledger.files.root)
