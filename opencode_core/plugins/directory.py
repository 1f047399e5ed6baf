"""The plugins of one host, for whoever asks: listed, added, removed and reloaded while everything runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import anyio
import attrs

from opencode_core.clock import Clock
from opencode_core.config import PluginSettings
from opencode_core.errors import PluginError, PluginReloadError
from opencode_core.model.event import PluginAdded, PluginEvent, PluginFailed, PluginReloaded, PluginRemoved
from opencode_core.model.plugin import Diagnostic, PluginState, PluginStatus
from opencode_core.plugins.candidate import Candidate, ObjectCode
from opencode_core.plugins.changes import Changes
from opencode_core.plugins.cleanup import CleanupFault
from opencode_core.plugins.diagnostics import diagnose
from opencode_core.plugins.loader import from_object
from opencode_core.plugins.place import Place
from opencode_core.plugins.record import Record
from opencode_core.plugins.roster import Roster
from opencode_core.plugins.scope import Attachment, Registry, Scope

Publish: TypeAlias = Callable[[PluginEvent], Awaitable[None]]
FindAgain: TypeAlias = Callable[[Candidate], Awaitable[Candidate]]

SLOW_IMPORT = 0.5
"""Seconds after which the import of a plugin is named as what makes the start slow."""


@attrs.define(eq=False, kw_only=True)
class PluginDirectory:
    """What ``Host.plugins`` is.

    Changes happen one at a time. Each is collected and validated beside what is there, shown in one step, and only
    then told to others and cleaned up after.
    """

    registry: Registry
    host_scope: Scope
    settings: PluginSettings
    clock: Clock
    publish: Publish
    find_again: FindAgain
    _roster: Roster = attrs.field(factory=Roster, init=False)
    _changes: Changes = attrs.field(init=False)
    _changing: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    @_changes.default
    def _make_changes(self) -> Changes:
        return Changes(
            registry=self.registry,
            host_scope=self.host_scope,
            settings=self.settings,
            clock=self.clock,
            on_fault=self._keep_out,
        )

    def __attrs_post_init__(self) -> None:
        self.registry.on_cleanup_fault = self._report_cleanup
        self._changes.importer.open()

    # What people ask

    def list(self) -> tuple[PluginStatus, ...]:
        """Returns every plugin that was found, builtins first, then by name."""
        return tuple(record.status() for record in self._roster)

    def get(self, name: str) -> PluginStatus:
        """Returns one plugin.

        Raises:
            PluginNotFoundError: No plugin has that name.
        """
        return self._roster.require(name).status()

    async def wait(self, name: str) -> PluginStatus:
        """Waits until a plugin is active, however long that takes.

        Raises:
            PluginError: It was found and is not active; the words are those of its last diagnostic.
        """
        while (record := self._roster.find(name)) is None:
            await self._changed.wait()
        if record.state != "active":
            raise _why_not_active(record)
        return record.status()

    async def add(self, plugin: object, *, name: str | None = None) -> PluginStatus:
        """Adds a plugin that the host made itself: a module, or any object with hooks.

        Raises:
            PluginError: It could not be added, and contributes nothing.
        """
        return await self.load(from_object(plugin, name))

    async def remove(self, name: str) -> None:
        """Removes a plugin with everything it contributes, in every scope.

        Raises:
            PluginNotFoundError: No plugin has that name.
        """
        async with self._changing:
            record = self._roster.require(name)
            ended = await self._changes.leave(record)
            self._roster.strike(record)
        await self._finish(ended, PluginRemoved(plugin=record.name, generation=0))

    async def reload(self, name: str) -> PluginStatus:
        """Imports a plugin's code anew and swaps it in; if anything fails, the old generation goes on answering.

        Plugins of the same package are reloaded with it, in the same step: they share its modules.

        Raises:
            PluginNotFoundError: No plugin has that name.
            PluginReloadError: A host handed it over as an object, which cannot be imported anew.
            PluginError: The new code is not there, not trusted, or not right; the old generation stays.
        """
        async with self._changing:
            record = self._roster.require(name)
            group = self._group(record)
            try:
                candidates = [await self.find_again(each.candidate) for each in group]
                ended = await self._changes.replace(group, candidates)
            except PluginError as error:
                await self._fail(record, error)
                raise
            for member in group:
                self._warn_about(member)
        for member, attachments in zip(group, ended, strict=True):
            event = PluginReloaded if member.last_number > 1 else PluginAdded
            await self._finish(attachments, event(plugin=member.name, generation=member.last_number))
        return record.status()

    # What the host does

    async def load(self, candidate: Candidate, *, quarantine: bool = False) -> PluginStatus:
        """Imports a plugin for the first time, into the host and every Location it serves.

        Args:
            candidate: What was found.
            quarantine: Whether a fault is only kept as a diagnostic, unless the settings are strict.

        Raises:
            PluginError: A fault, when it is not quarantined.
        """
        async with self._changing:
            record = self._roster.enter(candidate, "failed")
            try:
                if record.id != candidate.id:
                    raise self._roster.same_name(record)
                await self._changes.arrive(record)
            except PluginError as error:
                await self._fail(record, error)
                if not quarantine or self.settings.strict:
                    raise
                return record.status()
            self._warn_about(record)
        await self._finish((), PluginAdded(plugin=record.name, generation=record.last_number))
        return record.status()

    async def refuse(self, candidate: Candidate, state: PluginState, error: PluginError | None = None) -> None:
        """Keeps a plugin that is not to be imported in the list, with the reason."""
        record = self._roster.enter(candidate, state)
        if error is not None:
            await self._fail(record, error)

    def found_again(self, id: str, ways: tuple[str, ...]) -> None:
        """Notes by which other ways a plugin was found."""
        record = self._roster.find(id)
        if record is not None:
            record.also_found = ways

    async def open_place(self, place: Place) -> None:
        """Asks every plugin for what it contributes to a new Location.

        Raises:
            PluginError: A plugin failed, and the settings are strict.
        """
        async with self._changing:
            self._changes.places.append(place)
            for record in self._roster:
                await self._changes.join(record, place)

    async def close_place(self, place: Place) -> None:
        """Closes a Location, and removes the plugins of its project that serve no other."""
        async with self._changing:
            self._changes.places.remove(place)
            for record in self._roster:
                record.attachments.pop(place.scope, None)
                record.quarantined.discard(place.scope)
        await place.scope.aclose()
        for record in self._roster:
            folder = record.candidate.folder
            if folder is not None and not any(each.is_in(folder) for each in self.places):
                await self.remove(record.id)

    async def aclose(self) -> None:
        """Closes every scope, innermost first; nothing is published any more. Twice is harmless."""
        self._closed = True
        for place in reversed(self._changes.places):
            await place.scope.aclose()
        await self.host_scope.aclose()
        for record in self._roster:
            if record.generation is not None:
                self._changes.relay.dismiss(record.generation.hooks)
        self._changes.importer.close()

    def report(self, name: str, error: PluginError, *, scope: str = "host") -> None:
        """Keeps what went wrong with a plugin while it was in use, and says so once."""
        record = self._roster.find(name)
        if record is not None:
            self._note(record, diagnose(error, plugin=record.name, scope=scope))

    def warn(self, name: str, problem: str, remedy: str) -> None:
        """Says that something is odd about a plugin, or about a name that no plugin has."""
        diagnostic = Diagnostic(plugin=name, problem=problem, remedy=remedy, severity="warning")
        self._note(self._roster.find(name), diagnostic)

    def candidates(self) -> tuple[Candidate, ...]:
        """Returns every plugin that was found, whatever became of it."""
        return tuple(record.candidate for record in self._roster)

    @property
    def places(self) -> tuple[Place, ...]:
        """The Locations that are open."""
        return tuple(self._changes.places)

    # The steps

    def _group(self, record: Record) -> Sequence[Record]:
        """Returns the plugins that share a package with one, so that their modules are imported together."""
        if isinstance(record.candidate.code, ObjectCode):
            raise PluginReloadError(
                f"The plugin '{record.name}' was handed over by the host, so there is no code to import anew.",
                "Remove it, and add the new object.",
                plugin=record.name,
            )
        root = self._changes.importer.root
        shared = root(record.candidate)
        return [each for each in self._roster if each is record or (each.generation and root(each.candidate) == shared)]

    async def _finish(self, ended: Iterable[Attachment], event: PluginEvent) -> None:
        self._wake()
        await self._tell(event)
        for attachment in ended:
            await attachment.clean_up()

    async def _keep_out(self, record: Record, error: PluginError, scope: str) -> None:
        await self._fail(record, error, scope=scope)
        if self.settings.strict:
            raise error

    async def _fail(self, record: Record, error: PluginError, *, scope: str = "host") -> None:
        diagnostic = diagnose(error, plugin=record.name, scope=scope)
        self._note(record, diagnostic)
        self._wake()
        event = PluginFailed(
            plugin=record.name,
            generation=record.generation.number if record.generation else 0,
            problem=diagnostic.problem,
            remedy=diagnostic.remedy,
            hook=diagnostic.hook,
            scope=scope,
        )
        await self._tell(event)

    async def _tell(self, event: PluginEvent) -> None:
        if not self._closed:
            await self.publish(event)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _warn_about(self, record: Record) -> None:
        if record.generation is None:
            return
        for attribute in record.generation.hooks.unmarked:
            problem = (
                f"The function '{attribute}' of the plugin '{record.name}' has the name of a hook, but is not one."
            )
            self._note(record, _warning(record, problem, "Mark it with @hookimpl."))
        seconds = record.generation.import_seconds
        if seconds > SLOW_IMPORT:
            problem = f"Importing the plugin '{record.name}' took {seconds:.1f} s."
            self._note(record, _warning(record, problem, "Import what is slow inside the functions that need it."))

    def _report_cleanup(self, attachment: Attachment, fault: CleanupFault) -> None:
        name, deadline = attachment.owner.name, self.registry.cleanup_deadline
        subject = f"The clean-up '{fault.cleanup}' of the plugin '{name}'"
        known = diagnose(fault.error, plugin=name) if fault.error else Diagnostic(plugin=name, problem="")
        diagnostic = attrs.evolve(
            known,
            problem=f"{subject} raised: {known.problem}"
            if fault.error
            else f"{subject} did not return in {deadline:g} s.",
            remedy="It was abandoned: what it held may still be held.",
            severity="warning",
            scope=attachment.name,
        )
        self._note(self._roster.find(name), diagnostic)

    def _note(self, record: Record | None, diagnostic: Diagnostic) -> None:
        if record is None or record.note(diagnostic):
            level = logging.ERROR if diagnostic.severity == "error" else logging.WARNING
            logging.getLogger("opencode.plugins").log(level, "%s %s", diagnostic.problem, diagnostic.remedy)


def _warning(record: Record, problem: str, remedy: str) -> Diagnostic:
    return Diagnostic(plugin=record.name, problem=problem, remedy=remedy, severity="warning")


def _why_not_active(record: Record) -> PluginError:
    if not record.diagnostics:
        return PluginError(f"The plugin '{record.name}' is {record.state}.", plugin=record.name)
    last = record.diagnostics[-1]
    return PluginError(last.problem, last.remedy, plugin=record.name, hook=last.hook)
