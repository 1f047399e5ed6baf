"""Carries one change of a plugin through the host and every open Location. Tells nobody and keeps no diagnostics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import attrs

from opencode_core.clock import Clock
from opencode_core.config import PluginSettings
from opencode_core.errors import PluginError
from opencode_core.plugins.admission import Staged, hide, make_generation, show, stage
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.generations import Importer
from opencode_core.plugins.place import Place
from opencode_core.plugins.record import Generation, Record
from opencode_core.plugins.relay import Relay
from opencode_core.plugins.scope import Attachment, Registry, Scope

OnFault: TypeAlias = Callable[[Record, PluginError, str], Awaitable[None]]


@attrs.define(eq=False, kw_only=True)
class Changes:
    """How plugins arrive, are replaced and leave. One at a time: the caller sees to that.

    Attributes:
        on_fault: Is told of a fault that costs a plugin one Location; raises when faults are not tolerated.
    """

    registry: Registry
    host_scope: Scope
    settings: PluginSettings
    clock: Clock
    on_fault: OnFault
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
            raise
        record.settle(generation)
        for place in self.places:
            await self.join(record, place)

    async def join(self, record: Record, place: Place) -> None:
        """Brings an active plugin into a Location, if it serves it; a fault there costs it only that Location."""
        if record.generation is None or not _serves(record, place):
            return
        try:
            await self._show(await stage(record, record.generation, place.scope, place, clock=self.clock))
        except PluginError as error:
            record.quarantined.add(place.scope)
            await self.on_fault(record, error, place.scope.name)

    async def replace(self, group: Sequence[Record], candidates: Sequence[Candidate]) -> list[list[Attachment]]:
        """Imports the code of plugins that share a package anew, and swaps all of it in, in one step.

        Returns:
            What each of them showed before, taken away, and to be cleaned up by the caller.

        Raises:
            PluginError: Something is wrong with the new code; everything is as it was before.
        """
        generations: list[Generation] = []
        staged: list[Staged] = []
        with self.importer.begin(candidates) as replacement:
            try:
                for record, candidate in zip(group, candidates, strict=True):
                    generations.append(self._generation(record, candidate, replacement.load))
                    await self._stage_everywhere(record, generations[-1], staged)
                old = [list(record.attachments.values()) for record in group]
                await show(self.registry, staged, [each for attachments in old for each in attachments])
            except BaseException:
                await self._abandon(generations, staged)
                raise
            replacement.commit()
        for record, candidate, generation in zip(group, candidates, generations, strict=True):
            self._supersede(record, candidate, generation, staged)
        return old

    async def leave(self, record: Record) -> list[Attachment]:
        """Takes away everything that a plugin shows, and returns it to be cleaned up, last first."""
        ended = list(reversed(record.attachments.values()))
        await hide(self.registry, ended, self.places)
        record.attachments = {}
        if record.generation is not None:
            self.relay.dismiss(record.generation.hooks)
        record.generation, record.state = None, "removed"
        self.importer.forget(record.candidate)
        return ended

    async def _stage_everywhere(self, record: Record, generation: Generation, staged: list[Staged]) -> None:
        if record.candidate.folder is None:
            staged.append(await stage(record, generation, self.host_scope, None, clock=self.clock))
        for place in self.places:
            if _serves(record, place):
                await self._stage_in(record, generation, place, staged)

    async def _stage_in(self, record: Record, generation: Generation, place: Place, staged: list[Staged]) -> None:
        try:
            staged.append(await stage(record, generation, place.scope, place, clock=self.clock))
        except PluginError as error:
            if place.scope not in record.quarantined:  # where the old generation is kept out, the new one may be too
                raise
            await self.on_fault(record, error, place.scope.name)

    async def _show(self, part: Staged) -> None:
        try:
            await show(self.registry, [part])
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


def _serves(record: Record, place: Place) -> bool:
    return place.is_in(record.candidate.folder) and record.name not in place.settings.block
