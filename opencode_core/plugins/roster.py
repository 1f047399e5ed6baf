"""The plugins that a host knows, by name and in order. Changes none of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

import attrs

from opencode_core.errors import PluginContractError, PluginNotFoundError
from opencode_core.model.plugin import PluginState
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.record import Record

_REPLACEABLE = ("failed", "removed")


@attrs.define(eq=False)
class Roster:
    """Every plugin that was found, whatever became of it."""

    _records: dict[str, Record] = attrs.field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Record]:
        return iter(sorted(self._records.values(), key=lambda each: (not each.candidate.builtin, each.name, each.id)))

    def enter(self, candidate: Candidate, state: PluginState) -> Record:
        """Enters a plugin; one that failed before gives way to it, any other keeps the name."""
        id, number = candidate.id, 1
        while id in self._records and self._records[id].state not in _REPLACEABLE:
            number += 1
            id = f"{candidate.id}#{number}"
        record = self._records[id] = Record(candidate=candidate, id=id, state=state)
        return record

    def strike(self, record: Record) -> None:
        """Forgets a plugin."""
        self._records.pop(record.id, None)

    def find(self, name: str) -> Record | None:
        """Returns the plugin of that name, or None when there is none or there are several."""
        if name in self._records:
            return self._records[name]
        matches = [record for record in self if record.name == name]
        return matches[0] if len(matches) == 1 else None

    def require(self, name: str) -> Record:
        """Returns the plugin of that name.

        Raises:
            PluginNotFoundError: There is none, or there are several.
        """
        record = self.find(name)
        if record is not None:
            return record
        ids = [each.id for each in self if each.name == name]
        if ids:
            listed = ", ".join(f"'{id}'" for id in ids)
            raise PluginNotFoundError(f"Several plugins are called '{name}'.", f"Say which: {listed}.", plugin=name)
        hint = suggest(name, [each.name for each in self])
        raise PluginNotFoundError(f"There is no plugin called '{name}'.", hint, plugin=name)

    def same_name(self, record: Record) -> PluginContractError:
        """Says that a plugin was entered under a number, because its name was taken."""
        first = self._records[record.candidate.id].candidate
        return PluginContractError(
            f"Two plugins are called '{record.name}': one at '{first.location}', one at '{record.candidate.location}'.",
            "Rename one of them; the first one stays.",
            plugin=record.name,
        )


def suggest(name: str, known: Iterable[str]) -> str:
    """Says which known name was meant, or lists them."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names) or 'none'}."
