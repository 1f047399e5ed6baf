"""The one pure fold from the events of sessions to their rows. Stores nothing, and asks no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from opencode_core.errors import LifecycleConflictError
from opencode_core.model.event.base import DurableEvent, Recorded
from opencode_core.model.event.session import SessionCreated, SessionImported
from opencode_core.model.json import JSON
from opencode_core.model.projection import context, inbox, messages, parts, reverts, sessions, steps, tools
from opencode_core.model.rows import SESSION_PLACES, Change, Draft, Rows, in_order
from opencode_core.model.storage import Key

__all__ = ["Memory", "fold", "project"]

Projector = Callable[[Draft, Any, int], None]

_PROJECTORS: Final[dict[type[DurableEvent], Projector]] = {
    event: projector
    for room in (sessions, inbox, context, messages, steps, parts, tools, reverts)
    for event, projector in room.PROJECTORS.items()
}


def project(draft: Draft, recorded: Recorded) -> None:
    """Writes what an event changes into the draft; an event that is not of a session changes nothing.

    Raises:
        SessionError: The event does not fit what happened before; the draft is then of no use.
    """
    projector = _PROJECTORS.get(type(recorded.event))
    if projector is None:
        return
    is_first = recorded.sequence == 0 and not isinstance(recorded.event, (SessionCreated, SessionImported))
    if is_first and draft.get(SESSION_PLACES, (recorded.aggregate,)) is not None:
        raise LifecycleConflictError(
            f"The log of session '{recorded.aggregate}' would begin with '{recorded.event.kind.type}'.",
            "It is of the first generation: continue it with 'SessionStore.commit', which gives it a log.",
            session=recorded.aggregate,
        )
    projector(draft, recorded.event, recorded.sequence)


def fold(events: Iterable[Recorded], rows: Rows | None = None) -> list[Change]:
    """Returns every row that these events lead to, starting from the given rows, or from none.

    Raises:
        SessionError: An event does not fit what happened before.
    """
    draft = Draft(rows if rows is not None else Memory())
    for recorded in events:
        project(draft, recorded)
    return draft.changes()


@attrs.define(eq=False, repr=False)
class Memory:
    """Rows in a dictionary."""

    rows: dict[tuple[str, Key], JSON] = attrs.field(factory=dict)

    def apply(self, changes: Iterable[Change]) -> None:
        """Makes the changes."""
        for change in changes:
            if change.document is None:
                self.rows.pop((change.table, change.key), None)
            else:
                self.rows[change.table, change.key] = change.document

    def get(self, table: str, key: Key) -> JSON:
        """Returns a document, or None."""
        return self.rows.get((table, key))

    def scan(
        self, table: str, prefix: Key = (), *, after: Key | None = None, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[Key, JSON]]:
        """Yields documents in key order."""
        keys = sorted((key for name, key in self.rows if name == table and key[: len(prefix)] == prefix), key=in_order)
        if reverse:
            keys.reverse()
        if after is not None:
            bound = in_order(after)
            keys = [key for key in keys if (in_order(key) < bound if reverse else in_order(key) > bound)]
        for key in keys[:limit]:
            yield key, self.rows[table, key]
