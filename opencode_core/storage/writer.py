"""Records events, with everything that follows from them, inside one transaction. Commits nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import attrs

from opencode_core.errors import StorageDamagedError
from opencode_core.ids import Ids, is_placed
from opencode_core.model.codec import EventCodec
from opencode_core.model.event.base import DurableEvent, EventLocation, Recorded
from opencode_core.model.rows import Draft
from opencode_core.ports.storage import Transaction
from opencode_core.storage.envelope import row_of
from opencode_core.storage.tables import EVENT_IDS, EVENTS, HEADS

Projector: TypeAlias = Callable[[Draft, Recorded], None]
"""Writes what an event changes into the rows; raises to refuse the event."""

CommitHook: TypeAlias = Callable[[Draft, Recorded], object]
"""Runs after the projectors, in the same transaction."""


@attrs.define(eq=False, repr=False, kw_only=True)
class Writer:
    """One transaction on the log.

    Attributes:
        rows: All rows as they will be; what is written here is part of the transaction.
        recorded: What was appended so far.
    """

    rows: Draft
    recorded: list[Recorded] = attrs.field(init=False, factory=list)
    _transaction: Transaction
    _codec: EventCodec
    _ids: Ids
    _projectors: Sequence[Projector]

    def head(self, aggregate: str) -> int:
        """Returns the last sequence of a log; -1 when it is empty."""
        return cast("int", self._head(aggregate).get("sequence", -1))

    def owner(self, aggregate: str) -> str | None:
        """Returns who owns a log; None when nobody does."""
        return cast("str | None", self._head(aggregate).get("owner"))

    def claim(self, aggregate: str, owner: str) -> None:
        """Makes somebody the owner of a log."""
        self.rows.put(HEADS, (aggregate,), {**self._head(aggregate), "owner": owner})

    def append(
        self,
        event: DurableEvent,
        *,
        id: str | None = None,
        location: EventLocation | None = None,
        on_commit: CommitHook | None = None,
    ) -> Recorded:
        """Adds an event at the end of its log, and writes what follows from it.

        Raises:
            UnknownEventError: The codec does not know its class.
            OpencodeError: A projector refuses it.
        """
        aggregate = cast("str", getattr(event, event.kind.aggregate))
        head = self._head(aggregate)
        sequence = head.get("sequence", -1) + 1
        if id is None:
            id = self._ids.placed(aggregate, sequence)
        elif not is_placed(id, aggregate, sequence):
            self.rows.put(EVENT_IDS, (id,), [aggregate, sequence])
        recorded = Recorded(aggregate=aggregate, sequence=sequence, id=id, event=event, location=location)
        self.rows.put(EVENTS, (aggregate, sequence), row_of(recorded, self._codec))
        self.rows.put(HEADS, (aggregate,), {**head, "sequence": sequence})
        for projector in self._projectors:
            projector(self.rows, recorded)
        if on_commit is not None:
            on_commit(self.rows, recorded)
        self.recorded.append(recorded)
        return recorded

    def remove(self, aggregate: str) -> None:
        """Takes a whole log away; what was projected from it stays."""
        for key, row in self.rows.scan(EVENTS, (aggregate,)):
            id = cast("Mapping[str, Any]", row)["id"]
            if not is_placed(id, aggregate, cast("int", key[1])):
                self.rows.delete(EVENT_IDS, (id,))
            self.rows.delete(EVENTS, key)
        self.rows.delete(HEADS, (aggregate,))

    def finish(self) -> None:
        """Writes every changed row into the transaction."""
        self.rows.write(self._transaction)

    def _head(self, aggregate: str) -> Mapping[str, Any]:
        head = self.rows.read(HEADS, (aggregate,))
        if head is None and self.rows.last(EVENTS, (aggregate,)) is not None:
            raise StorageDamagedError(
                f"The log of '{aggregate}' has events, and nothing says where it ends.",
                "Run 'opencode-core storage check', and restore a backup.",
            )
        return head or {}
