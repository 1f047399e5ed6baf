"""What the state machine does to a store, and the dictionary that tells what must come of it."""

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from plugin_sdk.storage import JSON, InvalidDocumentError, InvalidKeyError, Key
from plugin_sdk.testing.storage.keys import scanned

Model = dict[str, dict[Key, JSON]]
Operation = Callable[[Any], object]

TABLES = ("events", "t2")

# Each works on a transaction and on the model alike, so that both run the same sequence.


@attrs.frozen
class Get:
    table: str
    key: Key

    def __call__(self, tx: Any) -> object:
        return tx.get(self.table, self.key)


@attrs.frozen
class Put:
    table: str
    key: Key
    document: JSON

    def __call__(self, tx: Any) -> object:
        return tx.put(self.table, self.key, self.document)


@attrs.frozen
class Delete:
    table: str
    key: Key

    def __call__(self, tx: Any) -> object:
        return tx.delete(self.table, self.key)


@attrs.frozen
class Scan:
    table: str
    prefix: Key
    after: Key | None
    limit: int | None
    reverse: bool

    def __call__(self, tx: Any) -> list[tuple[Key, JSON]]:
        return list(tx.scan(self.table, self.prefix, after=self.after, limit=self.limit, reverse=self.reverse))


@attrs.frozen
class Clear:
    """Removes what a scan yields while it yields."""

    table: str
    prefix: Key

    def __call__(self, tx: Any) -> object:
        removed = []
        for key, _ in tx.scan(self.table, self.prefix, after=None, limit=None, reverse=False):
            tx.delete(self.table, key)
            removed.append(key)
        return removed


@attrs.frozen
class Tables:
    def __call__(self, tx: Any) -> object:
        return list(tx.tables())


@attrs.frozen
class Refused:
    """Something that is refused, in the midst of a transaction that goes on."""

    table: str
    key: Any
    document: Any

    def __call__(self, tx: Any) -> object:
        try:
            tx.put(self.table, self.key, self.document)
        except (InvalidKeyError, InvalidDocumentError) as error:
            return type(error)
        return "accepted"


tables = st.sampled_from(TABLES)
parts = st.sampled_from([-1, 0, 1, 2, 10, 256, "", "a", "A", "ab", "é", "\x00", "1", "/", "\U0001f600"])
# Mostly these, so that what was written is found again, replaced and removed.
few_keys: st.SearchStrategy[Key] = st.sampled_from(
    [(0,), (2,), (10,), (-1, "a"), ("",), ("a",), ("a", 1), ("a", 2, "b"), ("ab",), ("A", "é"), ("\U0001f600", "\x00")]
)
keys = few_keys | few_keys | few_keys | st.lists(parts, min_size=1, max_size=3).map(tuple)
prefixes = st.sampled_from([(), ("a",), ("a", 1), (2,)]) | st.lists(parts, max_size=2).map(tuple)
documents: st.SearchStrategy[JSON] = st.recursive(
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
limits = st.none() | st.integers(0, 5)
reads = (
    st.builds(Get, tables, keys)
    | st.builds(Scan, tables, prefixes, st.none() | keys, limits, st.booleans())
    | st.builds(Scan, tables, st.just(()), st.none(), st.none(), st.booleans())
    | st.builds(Tables)
)
puts = st.builds(Put, tables, keys, documents)
deletes = st.builds(Delete, tables, few_keys)
refusals = st.sampled_from(
    [
        *(Refused("Events", ("a",), 1), Refused("", ("a",), 1), Refused("events", (), 1), Refused("events", (1.5,), 1)),
        *(Refused("events", (2**63,), 1), Refused("events", ("\ud800",), 1), Refused("events", ("a",), None)),
        *(Refused("events", ("a",), float("nan")), Refused("events", ("a",), {"a": b""}), Refused("t2", (1,), {1: 2})),
    ]
)
writes = puts | puts | deletes | deletes | refusals | st.builds(Clear, tables, prefixes)
transactions: st.SearchStrategy[list[Operation]] = st.lists(reads | writes, min_size=1, max_size=8).map(
    lambda operations: looked_at([*operations])
)


@attrs.define
class ModelTransaction:
    """What a transaction must answer; writes into a copy."""

    model: Model

    def get(self, table: str, key: Key) -> JSON:
        return self.model.get(table, {}).get(key)

    def scan(self, table: str, prefix: Key, *, after: Key | None, limit: int | None, reverse: bool) -> object:
        return scanned(self.model.get(table, {}), prefix, after, limit, reverse)

    def tables(self) -> list[str]:
        return sorted(name for name, rows in self.model.items() if rows)

    def put(self, table: str, key: Any, document: Any) -> None:
        if table not in TABLES or key in ((), (1.5,), (2**63,), ("\ud800",)):
            raise InvalidKeyError("Refused.")
        if document is None or document != document or document in ({"a": b""}, {1: 2}):
            raise InvalidDocumentError("Refused.")
        self.model.setdefault(table, {})[key] = document

    def delete(self, table: str, key: Key) -> None:
        self.model.get(table, {}).pop(key, None)


def looked_at(operations: list[Operation]) -> list[Operation]:
    """Returns the operations, then a look at each document that they wrote or removed, and at the tables."""
    places = [Get(each.table, each.key) for each in operations if isinstance(each, (Put, Delete))]
    return [*operations, *places, Tables()]


EVERYTHING: list[Operation] = [
    Tables(),
    *(Scan(table, (), None, None, False) for table in ("events", "sessions", "t2")),
]
