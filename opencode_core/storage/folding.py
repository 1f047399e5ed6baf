"""Folds one log into rows of its own, beside those that are stored, however long it is. Stores nothing."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from opencode_core.model.event.base import Recorded
from opencode_core.model.json import JSON
from opencode_core.model.projection import project
from opencode_core.model.rows import Draft, in_order
from opencode_core.model.storage import Key


@attrs.define(eq=False, repr=False)
class Folded:
    """The rows that the events so far lead to.

    They are kept by the first part of their keys, because that is how projections look for them; the cost of an event
    then does not grow with the session.
    """

    _groups: dict[tuple[str, str | int], dict[Key, JSON]] = attrs.field(init=False, factory=dict)

    def add(self, recorded: Recorded) -> None:
        """Folds the next event in.

        Raises:
            SessionError: It does not fit what happened before; nothing was changed.
        """
        draft = Draft(self)
        project(draft, recorded)
        for change in draft.changes():
            group = self._groups.setdefault((change.table, change.key[0]), {})
            if change.document is None:
                group.pop(change.key, None)
            else:
                group[change.key] = change.document

    def table(self, table: str) -> dict[Key, JSON]:
        """Returns everything in a table."""
        groups = (group for (name, _), group in self._groups.items() if name == table)
        return {key: document for group in groups for key, document in group.items()}

    def get(self, table: str, key: Key) -> JSON:
        """Returns a document, or None."""
        return self._groups.get((table, key[0]), {}).get(key)

    def scan(
        self, table: str, prefix: Key = (), *, after: Key | None = None, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[Key, JSON]]:
        """Yields documents in key order."""
        group = self._groups.get((table, prefix[0]), {}) if prefix else self.table(table)
        keys = sorted((key for key in group if key[: len(prefix)] == prefix), key=in_order, reverse=reverse)
        if after is not None:
            bound = in_order(after)
            keys = [key for key in keys if (in_order(key) < bound if reverse else in_order(key) > bound)]
        return iter([(key, group[key]) for key in keys[:limit]])
