"""Carries one change of a plugin through the host and every open Location. Tells nobody and keeps no diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import anyio
import attrs

from opencode_core.clock import Clock
from opencode_core.config import PluginSettings
from opencode_core.errors import PluginError
from opencode_core.model.plugin import PluginState
from opencode_core.plugins.admission import Staged, catalog_edits, make_generation, show, stage
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.generations import Importer
from opencode_core.plugins.place import Place
from opencode_core.plugins.record import Generation, Record
from opencode_core.plugins.relay import Relay
from opencode_core.plugins.roster import Roster
from opencode_core.plugins.scope import Attachment, Registry, Scope

OnFault: TypeAlias = Callable[[Record, PluginError, str], None]


@attrs.define(eq=False, repr=False, kw_only=True)
class Changes:
    """How plugins arrive, are replaced and leave. One at a time: the caller sees to that.

    A change that has begun to show completes, even when its caller is cancelled.

    Attributes:
        on_fault: Is told of a fault that costs a plugin one Location.
    """

    registry: Registry
    host_scope: Scope
    settings: PluginSettings
    clock: Clock
    on_fault: OnFault
    roster: Roster
    relay: Relay = attrs.field(factory=Relay)
    importer: Importer = attrs.field(factory=Importer)
    places: list[Place] = attrs.field(factory=list)

    async def arrive(self, record: Record) -> None:
        """Imports a plugin for the first time, into the host and every Location that it serves.

        Raises:
            PluginError: It contributes nothing to anybody.
        """
        generation = self._generation(record, record.candidate, self.importer.load)
        try:
            if record.candidate.folder is None:
                await self._show(await stage(record, generation, self.host_scope, None, clock=self.clock))
        except BaseException:
            self.relay.dismiss(generation.hooks)
            self.importer.forget(record.candidate)
            raise
        record.settle(generation)
        with anyio.CancelScope(shield=True):
            await self._join_everywhere(record)

    async def join(self, record: Record, place: Place) -> None:
        """Brings an active plugin into a Location, if it serves it; a fault there costs it only that Location.

        Raises:
            PluginError: There was a fault, and the settings are strict.
        """
        if record.generation is None or not place.admits(record.candidate):
            return
        try:
            await self._show(await stage(record, record.generation, place.scope, place, clock=self.clock))
        except PluginError as error:
            self._keep_out(record, place.scope, error)
            if self.settings.strict:
                raise

    async def replace(self, group: Sequence[Record], candidates: Sequence[Candidate]) -> list[Attachment]:
        """Imports the code of plugins that share a package anew, and swaps all of it in, in one step.

        Returns:
            What they showed before, taken away, and to be cleaned up by the caller.

        Raises:
            PluginError: Something is wrong with the new code; everything is as it was before.
        """
        generations: list[Generation] = []
        coming = _Coming()
        with self.importer.begin(candidates) as replacement:
            try:
                for record, candidate in zip(group, candidates, strict=True):
                    generations.append(self._generation(record, candidate, replacement.load))
                    await self._stage_everywhere(record, generations[-1], coming)
                old = [attachment for record in group for attachment in record.attachments.values()]
                await show(self.registry, self.places, staged=coming.staged, old=old)
            except BaseException:
                await self._abandon(generations, coming.staged)
                raise
            replacement.commit()
        for record, candidate, generation in zip(group, candidates, generations, strict=True):
            self._supersede(record, candidate, generation, coming.staged)
        for record, scope, error in coming.still_out:
            self._keep_out(record, scope, error)
        return old

    async def leave(self, record: Record) -> list[Attachment]:
        """Takes away everything that a plugin shows, and returns it to be cleaned up, last first.

        A plugin whose edits of a catalog fail without this one is kept out of that Location.
        """
        ended = list(reversed(record.attachments.values()))
        with anyio.CancelScope(shield=True):
            for place in self.places:
                ended += await self._without(place, ended)
            await show(self.registry, self.places, old=ended)
        record.attachments = {}
        if record.generation is not None:
            self.relay.dismiss(record.generation.hooks)
        record.generation, record.state = None, "removed"
        self.importer.forget(record.candidate)
        return ended

    async def _join_everywhere(self, record: Record) -> None:
        try:
            for place in self.places:
                await self.join(record, place)
        except BaseException:
            for attachment in await self.leave(record):
                await attachment.clean_up()
            raise

    async def _without(self, place: Place, ended: Sequence[Attachment]) -> list[Attachment]:
        """Returns what has to go from a catalog with what ends, because it cannot be edited without it."""
        dependents: list[Attachment] = []
        while edits := catalog_edits(place, (), [*ended, *dependents]):
            try:
                async with place.catalog.prepare(edits):
                    break
            except PluginError as error:
                other = self._find(error.plugin, place.scope)
                if other is None:
                    raise
                dependents.append(other.attachments.pop(place.scope))
                self._keep_out(other, place.scope, error)
        return dependents

    def _find(self, name: str, scope: Scope) -> Record | None:
        return next((each for each in self.roster if each.name == name and scope in each.attachments), None)

    def _keep_out(self, record: Record, scope: Scope, error: PluginError) -> None:
        record.quarantined.add(scope)
        self.on_fault(record, error, scope.name)

    async def _stage_everywhere(self, record: Record, generation: Generation, coming: _Coming) -> None:
        if record.candidate.folder is None:
            coming.staged.append(await stage(record, generation, self.host_scope, None, clock=self.clock))
        for place in self.places:
            if place.admits(record.candidate):
                await self._stage_in(record, generation, place, coming)

    async def _stage_in(self, record: Record, generation: Generation, place: Place, coming: _Coming) -> None:
        try:
            coming.staged.append(await stage(record, generation, place.scope, place, clock=self.clock))
        except PluginError as error:
            if place.scope not in record.quarantined:  # where the old generation is kept out, the new one may be too
                raise
            coming.still_out.append((record, place.scope, error))

    async def _show(self, part: Staged) -> None:
        places = [] if part.place is None else [part.place]
        try:
            await show(self.registry, places, staged=[part])
        except BaseException:
            await part.attachment.aclose()
            raise
        part.record.attachments[part.attachment.scope] = part.attachment

    async def _abandon(self, generations: Iterable[Generation], staged: Iterable[Staged]) -> None:
        for part in staged:
            await part.attachment.aclose()
        for generation in generations:
            self.relay.dismiss(generation.hooks)

    def _supersede(
        self, record: Record, candidate: Candidate, generation: Generation, staged: Iterable[Staged]
    ) -> None:
        if record.generation is not None:
            self.relay.dismiss(record.generation.hooks)
        record.candidate = candidate
        record.attachments = {part.attachment.scope: part.attachment for part in staged if part.record is record}
        record.quarantined -= record.attachments.keys()
        record.settle(generation)

    def _generation(self, record: Record, candidate: Candidate, load: Callable[[Candidate], object]) -> Generation:
        return make_generation(record, candidate, load, relay=self.relay, settings=self.settings, clock=self.clock)


@attrs.define(eq=False, repr=False)
class _Coming:
    """What new generations would contribute, and where they are kept out as the old ones were."""

    staged: list[Staged] = attrs.field(factory=list)
    still_out: list[tuple[Record, Scope, PluginError]] = attrs.field(factory=list)


def state_in(record: Record, places: Iterable[Place]) -> PluginState:
    """Returns what became of a plugin, as people see it who look at these Locations."""
    own = [place for place in places if place.is_in(record.candidate.folder)]
    if record.state != "active" or not own:
        return record.state
    admitting = [place for place in own if place.admits(record.candidate)]
    if not admitting:
        return "blocked"
    return "quarantined" if all(place.scope in record.quarantined for place in admitting) else "active"
