"""The plugins of one host, for whoever asks: listed, added, removed and reloaded while everything runs."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import attrs

from opencode_core.clock import Clock
from opencode_core.config import PluginSettings
from opencode_core.errors import Place as Position
from opencode_core.errors import PluginContractError, PluginError, PluginReloadError, ScopeClosedError
from opencode_core.model.event.plugin import PluginAdded, PluginEvent, PluginFailed, PluginReloaded, PluginRemoved
from opencode_core.model.location import Location
from opencode_core.model.plugin import Diagnostic, PluginState, PluginStatus
from opencode_core.plugins.admission import options_in
from opencode_core.plugins.candidate import Candidate, ObjectCode
from opencode_core.plugins.changes import Changes, state_in
from opencode_core.plugins.cleanup import CleanupFault
from opencode_core.plugins.diagnostics import diagnose
from opencode_core.plugins.loader import from_object
from opencode_core.plugins.place import Place, is_blocked
from opencode_core.plugins.record import MOST_DIAGNOSTICS, Record
from opencode_core.plugins.relay import Hooks
from opencode_core.plugins.roster import Roster
from opencode_core.plugins.scope import Attachment, Registry, Scope

Announce: TypeAlias = Callable[[PluginEvent], object]
Tell: TypeAlias = Callable[[PluginEvent], Awaitable[None]]
Ended: TypeAlias = list[Attachment]
FindAgain: TypeAlias = Callable[[Candidate], Awaitable[Candidate]]

SLOW_IMPORT = 0.5
"""Seconds after which the import of a plugin is named as what makes the start slow."""


@attrs.define(eq=False, repr=False, kw_only=True)
class PluginDirectory:
    """What ``Host.plugins`` is.

    Changes happen one at a time. Each is collected and validated beside what is there, shown in one step, and only
    then told to others and cleaned up after. An event hook or a clean-up may therefore ask for the next change.

    Attributes:
        announce: Hands an event to whoever listens, without waiting, in the order of the changes.
        tell: Tells plugins of an event; nothing waits for them but the caller of the change.
        find_again: Finds a plugin as it is now, to reload it.
    """

    registry: Registry
    host_scope: Scope
    settings: PluginSettings
    clock: Clock
    announce: Announce
    tell: Tell
    find_again: FindAgain
    _roster: Roster = attrs.field(factory=Roster, init=False)
    _changes: Changes = attrs.field(init=False)
    _changing: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _happened: list[PluginEvent] = attrs.field(factory=list, init=False)
    _notices: deque[Diagnostic] = attrs.field(factory=lambda: deque(maxlen=MOST_DIAGNOSTICS), init=False)

    @_changes.default
    def _make_changes(self) -> Changes:
        return Changes(
            registry=self.registry,
            host_scope=self.host_scope,
            settings=self.settings,
            clock=self.clock,
            on_fault=lambda record, error, scope: self._fail(record, error, scope=scope),
            roster=self._roster,
        )

    def __attrs_post_init__(self) -> None:
        self.registry.on_cleanup_fault = self._report_cleanup
        self._changes.importer.open()

    # What people ask

    def list(self) -> tuple[PluginStatus, ...]:
        """Returns every plugin that was found, builtins first, then by name."""
        return tuple(self._status(record) for record in self._roster)

    def get(self, name: str) -> PluginStatus:
        """Returns one plugin.

        Raises:
            PluginNotFoundError: No plugin has that name.
        """
        return self._status(self._roster.require(name))

    def implementing(self, hook: str, place: Place) -> tuple[tuple[str, Hooks, Any], ...]:
        """Returns the plugins that have a hook, in order: the name, the hooks to ask, the options in that Location.

        A plugin that does not serve the Location, or was kept out of it, is left out.
        """
        return tuple(
            (record.name, record.generation.hooks, options_in(record, record.generation, place))
            for record in self._roster
            if record.generation and record.generation.hooks.implements(hook) and place.scope in record.attachments
        )

    @property
    def notices(self) -> tuple[Diagnostic, ...]:
        """What is odd about names that no plugin has, oldest first."""
        return tuple(self._notices)

    async def wait(self, name: str) -> PluginStatus:
        """Waits until a plugin is active, however long that takes.

        Raises:
            PluginNotFoundError: Several plugins have that name.
            PluginError: It was found and is not active; the words are those of its last diagnostic.
            ScopeClosedError: The host closed.
        """
        while (record := self._roster.find(name)) is None:
            self._roster.refuse_ambiguous(name)
            await self.next_change()
        if record.state != "active":
            raise _why_not_active(record)
        return self._status(record)

    async def add(self, plugin: object, *, name: str | None = None) -> PluginStatus:
        """Adds a plugin that the host made itself: a module, or any object with hooks.

        Raises:
            PluginError: It could not be added, or is blocked, and contributes nothing.
            ScopeClosedError: The host has closed.
        """
        candidate = from_object(plugin, name)
        if is_blocked(candidate, self.settings):
            raise _blocked(PluginError, candidate.name)
        return await self.load(candidate)

    async def remove(self, name: str) -> None:
        """Removes a plugin with everything it contributes, in every scope.

        A plugin whose edits of a catalog fail without it is kept out of that Location, with a diagnostic.

        Raises:
            PluginNotFoundError: No plugin has that name.
            ScopeClosedError: The host has closed.
        """
        async with self._change() as ended:
            await self._take_away(self._roster.require(name), ended)

    async def reload(self, name: str) -> PluginStatus:
        """Imports a plugin's code anew and swaps it in; if anything fails, the old generation goes on answering.

        Plugins of the same package are reloaded with it, in the same step: they share its modules.

        Raises:
            PluginNotFoundError: No plugin has that name.
            PluginReloadError: A host handed it over as an object, which cannot be imported anew; or it is blocked.
            PluginError: The new code is not there, not trusted, or not right; the old generation stays.
            ConfigError: The configuration of its project is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            ScopeClosedError: The host has closed.
        """
        async with self._change() as ended:
            record = self._roster.require(name)
            group = self._group(record)
            try:
                candidates = [await self.find_again(each.candidate) for each in group]
                self._require_open()
                self._refuse_blocked(candidates)
                ended += await self._changes.replace(group, candidates)
            except PluginError as error:
                self._fail(next((each for each in group if each.name == error.plugin), record), error)
                raise
            for member in group:
                self._warn_about(member)
                event = PluginReloaded if member.last_number > 1 else PluginAdded
                self._happened.append(event(plugin=member.name, generation=member.last_number))
        return self._status(record)

    # What the host does

    async def load(self, candidate: Candidate, *, quarantine: bool = False) -> PluginStatus:
        """Imports a plugin for the first time, into the host and every Location it serves.

        Args:
            candidate: What was found.
            quarantine: Whether a fault is only kept as a diagnostic, unless the settings are strict.

        Raises:
            PluginError: A fault, when it is not quarantined.
            ScopeClosedError: The host has closed.
        """
        async with self._change():
            known = self._roster.same_code(candidate)
            if quarantine and known is not None and known.generation is not None:  # found twice at the same moment
                self.found_again(candidate)
                return self._status(known)
            record = self._roster.draft(candidate)
            try:
                self._refuse_second(record)
                await self._changes.arrive(record)
            except PluginError as error:
                record.state = "failed"
                self._roster.enter(record)
                self._fail(record, error)
                if not quarantine or self.settings.strict:
                    raise
                return self._status(record)
            self._roster.enter(record)
            self._warn_about(record)
            self._happened.append(PluginAdded(plugin=record.name, generation=record.last_number))
        return self._status(record)

    async def refuse(self, candidate: Candidate, state: PluginState, error: PluginError | None = None) -> None:
        """Keeps a plugin that is not to be imported in the list, with the reason; what runs of it goes on."""
        async with self._change():
            record = self._roster.same_code(candidate)
            if record is None or record.generation is None:
                record = self._roster.draft(candidate, state)
                self._roster.enter(record)
            if error is not None:
                self._fail(record, error)

    def found_again(self, candidate: Candidate) -> None:
        """Notes by which other way a plugin was found."""
        record = self._roster.same_code(candidate)
        if record is not None and record.candidate.way != candidate.way:
            record.also_found = tuple(dict.fromkeys((*record.also_found, candidate.way)))

    async def open_place(self, place: Place) -> None:
        """Asks every plugin for what it contributes to a new Location.

        Raises:
            PluginError: A plugin failed, and the settings are strict; the Location is to be closed.
            ScopeClosedError: The host has closed.
        """
        async with self._change():
            self._changes.places.append(place)
            with anyio.CancelScope(shield=True):
                for record in self._roster:
                    await self._changes.join(record, place)

    async def close_place(self, place: Place) -> None:
        """Closes a Location, and removes the plugins of its project that serve no other; twice is harmless."""
        if self._closed or place not in self._changes.places:
            return
        async with self._change():
            self._changes.places.remove(place)
            for record in self._roster:
                record.attachments.pop(place.scope, None)
                record.quarantined.discard(place.scope)
        await place.scope.aclose()
        async with self._change() as ended:
            for record in self._roster:
                folder = record.candidate.folder
                if folder is not None and not any(each.is_in(folder) for each in self.places):
                    await self._take_away(record, ended)

    async def aclose(self) -> None:
        """Closes every scope, innermost first; nothing is published any more. Twice is harmless."""
        self._closed = True
        self._wake()
        with anyio.move_on_after(self.registry.cleanup_deadline):
            async with self._changing:  # lets a change that is under way end; further ones are refused
                pass
        try:
            for place in reversed(self._changes.places):
                await place.scope.aclose()
            await self.host_scope.aclose()
        finally:
            for record in self._roster:
                if record.generation is not None:
                    self._changes.relay.dismiss(record.generation.hooks)
            self._changes.importer.close()

    def report(self, name: str, error: PluginError, *, scope: str = "host") -> None:
        """Keeps what went wrong with a plugin while it was in use, and says so once."""
        self._note(self._roster.find(name), diagnose(error, plugin=name, scope=scope))

    def warn(self, name: str, problem: str, remedy: str) -> None:
        """Says that something is odd about a plugin, or about a name that no plugin has."""
        diagnostic = Diagnostic(plugin=name, problem=problem, remedy=remedy, severity="warning")
        self._note(self._roster.find(name), diagnostic)

    def failed_in(self, location: Location) -> frozenset[str]:
        """Returns the names of the plugins that could not be loaded, or are kept out of a Location by a fault."""
        where = str(location.directory)
        return frozenset(
            record.name
            for record in self._roster
            if record.state == "failed" or any(scope.name == where for scope in record.quarantined)
        )

    def candidates(self) -> tuple[Candidate, ...]:
        """Returns how every plugin was found, whatever became of it."""
        return tuple(record.candidate for record in self._roster)

    def entries(self) -> tuple[Record, ...]:
        """Returns what is known of every plugin that was found, to look at."""
        return tuple(self._roster)

    async def next_change(self) -> None:
        """Waits until a plugin was added, reloaded, removed or failed.

        Raises:
            ScopeClosedError: The host closed.
        """
        self._require_open()
        await self._changed.wait()

    @property
    def places(self) -> tuple[Place, ...]:
        """The Locations that are open."""
        return tuple(self._changes.places)

    # The steps

    @asynccontextmanager
    async def _change(self) -> AsyncIterator[Ended]:
        """Lets one change happen at a time, and yields the list of what is to be cleaned up after it."""
        ended: Ended = []
        happened: Sequence[PluginEvent] = ()
        try:
            async with self._changing:
                self._require_open()
                try:
                    yield ended
                finally:
                    happened = self._announce_all()
        finally:
            try:
                for event in happened:
                    await self.tell(event)
            finally:
                for attachment in ended:
                    await attachment.clean_up()

    def _announce_all(self) -> Sequence[PluginEvent]:
        happened, self._happened = self._happened, []
        if self._closed:
            return ()
        self._wake()
        for event in happened:
            self.announce(event)
        return happened

    def _require_open(self) -> None:
        if self._closed:
            raise ScopeClosedError("The host has closed, with all its plugins.", "Open another one.")

    def _group(self, record: Record) -> Sequence[Record]:
        """Returns the plugins that share a package with one, so that their modules are imported together."""
        self._refuse_reload(record)
        root = self._changes.importer.root
        shared = root(record.candidate)
        return [each for each in self._roster if each is record or (each.generation and root(each.candidate) == shared)]

    def _refuse_reload(self, record: Record) -> None:
        if isinstance(record.candidate.code, ObjectCode):
            raise PluginReloadError(
                f"The plugin '{record.name}' was handed over by the host, so there is no code to import anew.",
                "Remove it, and add the new object.",
                plugin=record.name,
            )
        if record.state == "blocked":
            raise _blocked(PluginReloadError, record.name)
        if record.id != record.candidate.id and self._roster.find(record.candidate.id) is not None:
            raise self._roster.same_name(record)

    def _refuse_blocked(self, candidates: Iterable[Candidate]) -> None:
        """Refuses what the person, or every Location that it would serve, keeps out, before any of it is imported."""
        for candidate in candidates:
            own = [place for place in self._changes.places if place.is_in(candidate.folder)]
            is_kept_out = candidate.folder is not None and not any(place.admits(candidate) for place in own)
            if is_blocked(candidate, self.settings) or is_kept_out:
                raise _blocked(PluginReloadError, candidate.name)

    def _refuse_second(self, record: Record) -> None:
        if record.id != record.candidate.id:
            raise self._roster.same_name(record)
        same = self._roster.same_code(record.candidate)
        if same is not None and same.generation is not None:
            raise PluginContractError(
                f"The plugin '{record.name}' is here already, as '{same.id}'.",
                "Remove that one first.",
                plugin=record.name,
            )

    async def _take_away(self, record: Record, ended: Ended) -> None:
        ended += await self._changes.leave(record)
        self._roster.strike(record)
        self._happened.append(PluginRemoved(plugin=record.name, generation=0))

    def _fail(self, record: Record, error: PluginError, *, scope: str = "host") -> None:
        diagnostic = diagnose(error, plugin=record.name, scope=scope)
        self._note(record, diagnostic)
        event = PluginFailed(
            plugin=record.name,
            generation=record.generation.number if record.generation else 0,
            problem=diagnostic.problem,
            remedy=diagnostic.remedy,
            hook=diagnostic.hook,
            scope=scope,
            file=diagnostic.file,
            line=diagnostic.line,
        )
        self._happened.append(event)

    def _status(self, record: Record) -> PluginStatus:
        return attrs.evolve(record.status(), state=state_in(record, self._changes.places))

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
        if record is not None:
            is_new = record.note(diagnostic)
        else:
            is_new = all(known.problem != diagnostic.problem for known in self._notices)
        if record is None and is_new:
            self._notices.append(diagnostic)
        if is_new:
            level = logging.ERROR if diagnostic.severity == "error" else logging.WARNING
            logging.getLogger("opencode.plugins").log(level, "%s %s", diagnostic.problem, diagnostic.remedy)


def _warning(record: Record, problem: str, remedy: str) -> Diagnostic:
    return Diagnostic(plugin=record.name, problem=problem, remedy=remedy, severity="warning")


def _blocked(kind: type[PluginError], name: str) -> PluginError:
    return kind(
        f"The plugin '{name}' is blocked by the configuration.",
        "Take it off 'plugin_block', and put it on 'plugin_allow' if there is such a list.",
        plugin=name,
    )


def _why_not_active(record: Record) -> PluginError:
    errors = [each for each in record.diagnostics if each.severity == "error"]
    if not errors:
        return PluginError(f"The plugin '{record.name}' is {record.state}.", plugin=record.name)
    last = errors[-1]
    place = Position(last.file, last.line) if last.file else None
    return PluginError(last.problem, last.remedy, plugin=record.name, hook=last.hook, place=place)
