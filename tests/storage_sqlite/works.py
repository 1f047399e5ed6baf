"""Work for transactions, which the tests of this folder share. Tests nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from plugin_sdk.storage import JSON, Key, Transaction


def putting(table: str, documents: Mapping[Key, JSON]) -> Callable[[Transaction], None]:
    """Writes all of these."""

    def work(tx: Transaction) -> None:
        for key, document in documents.items():
            tx.put(table, key, document)

    return work


def deleting(table: str, keys: Iterable[Key]) -> Callable[[Transaction], None]:
    """Deletes all of these."""

    def work(tx: Transaction) -> None:
        for key in keys:
            tx.delete(table, key)

    return work
