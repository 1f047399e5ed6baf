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


@attrs.define(eq=False, repr=False)
class Roster:
    """Every plugin that was found, whatever became of it."""

    _records: dict[str, Record] = attrs.field(factory=dict, init=False)
    _in_order: tuple[Record, ...] = attrs.field(default=(), init=False)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._in_order)

    def draft(self, candidate: Candidate, state: PluginState = "failed") -> Record:
        """Makes the record of a plugin that is not entered yet; numbered, when another one keeps the name."""
        id, number = candidate.id, 1
        while id in self._records and not _gives_way(self._records[id], candidate):
            number += 1
            id = f"{candidate.id}#{number}"
        return Record(candidate=candidate, id=id, state=state)

    def enter(self, record: Record) -> None:
        """Enters a plugin, in the place of one that gave way to it."""
        self._records[record.id] = record
        self._sort()

    def strike(self, record: Record) -> None:
        """Forgets a plugin."""
        self._records.pop(record.id, None)
        self._sort()

    def find(self, name: str) -> Record | None:
        """Returns the plugin of that name, or None when there is none or there are several."""
        if name in self._records:
            return self._records[name]
        ids = self._ids(name)
        return self._records[ids[0]] if len(ids) == 1 else None

    def same_code(self, candidate: Candidate) -> Record | None:
        """Returns the plugin that was found with the same code, or at the same place of the same project."""
        for record in self:
            if record.candidate.identity == candidate.identity:
                return record
        where = (candidate.folder, candidate.location)
        for record in self:
            if candidate.folder is not None and (record.candidate.folder, record.candidate.location) == where:
                return record
        return None

    def require(self, name: str) -> Record:
        """Returns the plugin of that name.

        Raises:
            PluginNotFoundError: There is none, or there are several.
        """
        record = self.find(name)
        if record is not None:
            return record
        self.refuse_ambiguous(name)
        hint = suggest(name, [each.name for each in self])
        raise PluginNotFoundError(f"There is no plugin called '{name}'.", hint, plugin=name)

    def refuse_ambiguous(self, name: str) -> None:
        """Raises when several plugins have that name.

        Raises:
            PluginNotFoundError: The ids to choose from are in it.
        """
        ids = self._ids(name)
        if len(ids) > 1:
            listed = ", ".join(f"'{id}'" for id in ids)
            raise PluginNotFoundError(f"Several plugins are called '{name}'.", f"Say which: {listed}.", plugin=name)

    def same_name(self, record: Record) -> PluginContractError:
        """Says that a plugin was entered under a number, because its name was taken."""
        first = self._records[record.candidate.id].candidate
        return PluginContractError(
            f"Two plugins are called '{record.name}': one at '{first.location}', one at '{record.candidate.location}'.",
            "Rename one of them; the first one stays.",
            plugin=record.name,
        )

    def _sort(self) -> None:
        records = self._records.values()
        self._in_order = tuple(sorted(records, key=lambda each: (not each.candidate.builtin, each.name, each.id)))

    def _ids(self, name: str) -> list[str]:
        """Returns the plugins of a name, without those that were numbered because the name was taken."""
        return [each.id for each in self if each.name == name and each.id == each.candidate.id]


def _gives_way(record: Record, candidate: Candidate) -> bool:
    """Whether a plugin leaves its name to another: it failed, or was kept out and is now found again."""
    return record.generation is None and (
        record.state in _REPLACEABLE or record.candidate.identity == candidate.identity
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """Says which known name was meant, or lists them."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(names) or 'none'}."
