"""The composition root: settings, then plugins, then Locations. The only place that wires."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import attrs

from opencode_core.bus import Bus
from opencode_core.clock import Clock, SystemClock
from opencode_core.config import (
    Document,
    PluginSettings,
    PluginSpec,
    document_from,
    plugin_settings,
    read_documents,
)
from opencode_core.context.compose import compose
from opencode_core.control import serve_control
from opencode_core.errors import ConfigError, OpencodeError, PluginError, PluginUntrustedError, ScopeClosedError
from opencode_core.model.catalog import Catalog, CatalogDraft
from opencode_core.model.context import SystemContext
from opencode_core.model.event import CatalogUpdated, Event
from opencode_core.model.json import JSON
from opencode_core.model.location import Location
from opencode_core.plugins.calls import tell
from opencode_core.plugins.candidate import Candidate, FileCode
from opencode_core.plugins.directory import PluginDirectory
from opencode_core.plugins.finder import Ask, Finder, Found, pick
from opencode_core.plugins.loader import from_object, once
from opencode_core.plugins.packages import Installer, PipInstaller
from opencode_core.plugins.place import Place, is_blocked
from opencode_core.plugins.record import Record
from opencode_core.plugins.replay import Replayed
from opencode_core.plugins.roster import suggest
from opencode_core.plugins.scope import Attachment, Contribution, Owner, Registry, Scope, View
from opencode_core.plugins.slots import RUNTIME_HOOKS
from opencode_core.plugins.trust import TrustStore
from opencode_core.plugins.watch import Watcher
from opencode_core.project import find_location, folders_of

Plugins = Mapping[str, object] | Iterable[object]


@attrs.define(eq=False, kw_only=True)
class Host:
    """An open host: its plugins, its Locations, its events. Made by `Host.open`.

    Attributes:
        plugins: Who is here now: list, add, remove, reload.
        events: What happens, as it happens.
        location: The Location that the host was opened in.
    """

    plugins: PluginDirectory
    events: Bus[Event]
    location: Place = attrs.field(init=False)
    _scope: Scope
    _finder: Finder
    _settings: PluginSettings
    _documents: _Documents

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        directory: Path | str = ".",
        *,
        plugins: Plugins = (),
        config: Mapping[str, JSON] | None = None,
        entry_points: bool = True,
        ask_trust: Ask | None = None,
        installer: Installer | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        config_dir: Path | None = None,
        data_dir: Path | None = None,
        cleanup_deadline: float = 5.0,
        watch: bool | None = None,
        control: bool = False,
    ) -> AsyncIterator[Host]:
        """Opens a host in a directory, with every plugin loaded, and closes it with everything in it.

        Args:
            directory: Where sessions run; the project around it is found from here.
            plugins: Plugins of the host's own: objects, or texts as in a ``plugin`` list, or either by name.
            config: The settings; None to read the configuration files of the person and the project.
            entry_points: Whether installed plugins, the builtins among them, are found.
            ask_trust: Asks the person to trust the code of a project; None to leave it to ``plugins trust``.
            installer: Installs ``pip:`` entries.
            clock: The time, the machine's by default.
            environ: The environment variables, the process's by default.
            config_dir: Where the person's configuration is.
            data_dir: Where the host keeps what it must remember.
            cleanup_deadline: How many seconds one clean-up of a plugin may take.
            watch: Whether changed plugins are reloaded by themselves; None for what is configured.
            control: Whether ``opencode-core plugins reload`` reaches this host from another terminal.

        Raises:
            ConfigError: The directory or the configuration is wrong.
            TrustError: The record of trusted projects is damaged.
            PluginError: A plugin failed, and the settings are strict.
        """
        environment = os.environ if environ is None else environ
        location = find_location(directory)
        documents = _Documents(config, config_dir or config_folder(environment), environment)
        settings = plugin_settings(documents.of_person(location))
        data = data_dir or data_folder(environment)
        clock = clock or SystemClock()
        finder = Finder(
            trust=TrustStore(data / "trust.toml"),
            ask=ask_trust,
            installer=installer or PipInstaller(data / "packages"),
            clock=clock,
            entry_points=entry_points,
        )
        host = cls._make(settings, documents, finder, clock, cleanup_deadline)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(host._close)
            await host._start(location, plugins)
            group = await stack.enter_async_context(_background())
            if control:
                await group.start(serve_control, host.plugins, str(location.directory), data / "hosts")
            if settings.watch if watch is None else watch:
                watcher = Watcher(paths=host._watched, on_change=host._on_files, moved=host.plugins.next_change)
                await group.start(watcher.run)
            yield host

    @classmethod
    def _make(
        cls, settings: PluginSettings, documents: _Documents, finder: Finder, clock: Clock, deadline: float
    ) -> Host:
        registry = Registry(cleanup_deadline=deadline)
        scope = registry.open("host")
        events: Bus[Event] = Bus()

        async def tell_plugins(event: Event) -> None:
            await host.tell(event)

        async def find_again(candidate: Candidate) -> Candidate:
            return await host._find_again(candidate)

        directory = PluginDirectory(
            registry=registry,
            host_scope=scope,
            settings=settings,
            clock=clock,
            announce=events.publish,
            tell=tell_plugins,
            find_again=find_again,
        )
        host = cls(
            plugins=directory,
            events=events,
            scope=scope,
            finder=finder,
            settings=settings,
            documents=documents,
        )
        return host

    def read(self) -> View:
        """Returns everything that is contributed to the whole host now."""
        return self._scope.read()

    def attach(self, name: str) -> Attachment:
        """Opens a part of the host scope for the application itself, to register tools and context in."""
        return self._scope.attach(Owner(name, "host"))

    async def publish(self, event: Event) -> None:
        """Tells subscribers and plugins what happened; a fault of one is nobody else's."""
        self.events.publish(event)
        await self.tell(event)

    async def tell(self, event: Event) -> None:
        """Tells plugins what happened, each once, in order; a fault of one is nobody else's."""
        if not self.plugins.registry.holds_any(RUNTIME_HOOKS["opencode_event"]):
            return
        views = [self.read(), *(place.read() for place in self.plugins.places)]
        await tell(views, event, on_fault=self.on_fault)

    def on_fault(self, contribution: Contribution[Any], error: PluginError) -> None:
        """Keeps the fault of a hook as a diagnostic of its plugin."""
        self.plugins.report(contribution.owner.name, error)

    async def context(self, place: Place | None = None) -> SystemContext:
        """Composes the System Context of a Location, the host's own by default."""
        return await compose((place or self.location).read())

    @asynccontextmanager
    async def open_location(self, directory: Path | str) -> AsyncIterator[Place]:
        """Opens another Location, with what plugins contribute to it, and closes it again.

        Raises:
            ConfigError: The directory or the configuration in it is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: A plugin failed, and the settings are strict.
        """
        location = find_location(directory)
        async with self._closing(await self._open_place(await self._survey(location))) as place:
            yield place

    async def refresh(self) -> None:
        """Looks at the projects' plugin folders again: new plugins are added, those that are gone are removed.

        Raises:
            ConfigError: The configuration of a project is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: A plugin failed, and the settings are strict.
        """
        done: set[Path] = set()
        for place in self.plugins.places:
            documents = self._documents.of(place.location)
            for folder in place.folders:
                if folder not in done and place in self.plugins.places:
                    done.add(folder)
                    found = await self._finder.in_folder(folder, root=place.location.root, documents=documents)
                    self._apply_settings(folder)
                    await self._match(folder, found, place)

    async def _start(self, location: Location, plugins: Plugins) -> None:
        objects, specs = _handed_over(plugins, location.directory)
        found = await self._finder.in_host([*self._settings.load, *specs])
        found = attrs.evolve(found, candidates=(*found.candidates, *objects))
        survey = await self._survey(location)
        everything = [found, *survey.found.values()]
        known = [*(each for part in everything for each in part.candidates)]
        self._check_names([*known, *(each.candidate for part in everything for each in part.refused)])
        await self._load(found)
        self.location = await self._open_place(survey)
        await self._warn_about_options()

    async def _survey(self, location: Location) -> _Survey:
        """Looks at everything in a project that concerns plugins, reading the configuration once."""
        documents = self._documents.of(location)
        found = {
            folder: await self._finder.in_folder(folder, root=location.root, documents=documents)
            for folder in folders_of(location)
        }
        return _Survey(location, found, plugin_settings(filter(self._finder.admits, documents)))

    async def _open_place(self, survey: _Survey) -> Place:
        location = survey.location
        place = Place(
            location=location,
            scope=self._scope.open_child("location", str(location.directory)),
            catalog=Replayed(CatalogDraft, CatalogDraft.finish, self._on_catalog(location)),
            settings=survey.settings,
            folders=tuple(survey.found),
        )
        try:
            await self.plugins.open_place(place)
            for part in survey.found.values():
                await self._load(part, place)
        except BaseException:
            async with self._closing(place):
                raise
        return place

    @asynccontextmanager
    async def _closing(self, place: Place) -> AsyncIterator[Place]:
        try:
            yield place
        finally:
            with anyio.CancelScope(shield=True):
                await self.plugins.close_place(place)
                await place.scope.aclose()

    async def _find_again(self, candidate: Candidate) -> Candidate:
        places = [place for place in self.plugins.places if place.is_in(candidate.folder)]
        if candidate.folder is None or not places:
            return self._finder.again(candidate)
        location = places[0].location
        documents = self._documents.of(location)
        found = await self._finder.in_folder(candidate.folder, root=location.root, documents=documents)
        if found.is_trusted:
            self._apply_settings(candidate.folder)
        return pick(found, candidate)

    def _apply_settings(self, folder: Path) -> None:
        for place in self.plugins.places:
            if place.is_in(folder):
                documents = self._documents.of(place.location)
                place.settings = plugin_settings(filter(self._finder.admits, documents))

    async def _load(self, found: Found, place: Place | None = None) -> None:
        candidates, again = once(found.candidates)
        for refused in found.refused:
            await self._refuse(refused.candidate, refused.error)
        for candidate in sorted(candidates, key=lambda each: (not each.builtin, each.name)):
            await self._load_one(candidate, place)
        for candidate in again:
            self.plugins.found_again(candidate)

    async def _load_one(self, candidate: Candidate, place: Place | None) -> None:
        known = self._known(candidate)
        if known is not None and known.state not in ("untrusted", "blocked"):
            self.plugins.found_again(candidate)
        elif is_blocked(candidate, self._settings) or (place is not None and not place.admits(candidate)):
            await self.plugins.refuse(candidate, "blocked")
        else:
            await self.plugins.load(candidate, quarantine=True)

    def _known(self, candidate: Candidate) -> Record | None:
        entries = self.plugins.entries()
        return next((each for each in entries if each.candidate.identity == candidate.identity), None)

    async def _refuse(self, candidate: Candidate, error: PluginError) -> None:
        known = self._known(candidate)
        if known is not None and any(each.problem == error.problem for each in known.diagnostics):
            return
        is_trust = isinstance(error, PluginUntrustedError)
        await self.plugins.refuse(candidate, "untrusted" if is_trust else "failed", error)
        if self._settings.strict and not is_trust:
            raise error

    async def _match(self, folder: Path, found: Found, place: Place) -> None:
        for entry in self.plugins.entries():
            if entry.candidate.folder == folder and _is_gone(entry.candidate, found):
                await self.plugins.remove(entry.id)
        await self._load(found, place)

    def _check_names(self, candidates: Iterable[Candidate]) -> None:
        names = {candidate.name for candidate in candidates}
        for key, listed in (
            ("plugin_allow", self._settings.allow or ()),
            ("plugin_block", self._settings.block),
        ):
            for name in listed:
                if name not in names:
                    hint = suggest(name, names)
                    raise ConfigError(f"The setting '{key}' names the plugin '{name}', which was not found.", hint)

    async def _warn_about_options(self) -> None:
        names = {status.name for status in self.plugins.list()}
        for name in sorted(set(self._settings.options) - names):
            problem = f"Options are configured for the plugin '{name}', which was not found."
            if self._settings.strict:
                raise ConfigError(problem, suggest(name, names))
            self.plugins.warn(name, problem, suggest(name, names))

    def _on_catalog(self, location: Location) -> Any:
        def publish(_catalog: Catalog) -> None:
            self.events.publish(CatalogUpdated(directory=str(location.directory)))

        return publish

    async def _on_files(self, changed: frozenset[Path]) -> None:
        before = {entry.id: entry.last_number for entry in self.plugins.entries()}
        for entry in self.plugins.entries():
            # A plugin that shares a package with another was reloaded with it.
            if _is_touched(entry, changed) and entry.last_number == before[entry.id]:
                await self._quietly(partial(self.plugins.reload, entry.id), entry.name)
        if any(self._is_news(path) for path in changed):
            await self._quietly(self.refresh)

    async def _quietly(self, change: Callable[[], Awaitable[object]], name: str = "") -> None:
        """Lets what runs go on: the fault of a plugin is kept as a diagnostic and published, any other is told."""
        try:
            await change()
        except (PluginError, ScopeClosedError):
            return
        except OpencodeError as error:
            self.plugins.warn(name, error.problem, error.remedy)

    def _is_news(self, path: Path) -> bool:
        """Whether a file in a plugin folder is new or gone, rather than a known plugin's."""
        known = (each for entry in self.plugins.entries() for each in entry.candidate.watched)
        is_known = any(path.is_relative_to(each) and each.exists() for each in known)
        return not is_known and any(path.is_relative_to(folder) for folder in self._plugin_folders())

    def _watched(self) -> frozenset[Path]:
        paths = {path for candidate in self.plugins.candidates() for path in candidate.watched}
        return frozenset(paths | self._plugin_folders())

    def _plugin_folders(self) -> frozenset[Path]:
        return frozenset(
            folder / ".opencode" / name
            for place in self.plugins.places
            for folder in place.folders
            for name in ("plugins", "plugin")
            if (folder / ".opencode" / name).is_dir()
        )

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.plugins.aclose()
        self.events.close()


@attrs.frozen
class _Documents:
    """Where settings come from: the files, or what the host says instead of them."""

    config: Mapping[str, JSON] | None
    config_dir: Path
    environ: Mapping[str, str]

    def of(self, location: Location) -> tuple[Document, ...]:
        if self.config is not None:
            return (document_from(self.config, base=location.directory),)
        return read_documents(location, config_dir=self.config_dir, environ=self.environ)

    def of_person(self, location: Location) -> tuple[Document, ...]:
        return tuple(document for document in self.of(location) if document.folder is None)


@attrs.frozen
class _Survey:
    """What a project holds and says about plugins, by folder from the root down."""

    location: Location
    found: dict[Path, Found]
    settings: PluginSettings


def _is_gone(candidate: Candidate, found: Found) -> bool:
    """Whether a plugin of a project is not there any more; while that is not trusted, only its files can say."""
    if any(each.identity == candidate.identity for each in found.candidates):
        return False
    if not found.is_trusted:
        return isinstance(candidate.code, FileCode) and not candidate.code.path.exists()
    return all(each.candidate.location != candidate.location for each in found.refused)


def _is_touched(entry: Record, changed: frozenset[Path]) -> bool:
    """Whether a plugin is to be reloaded; when its files left a project, that is looked at again instead."""
    candidate = entry.candidate
    if entry.state == "blocked" or (candidate.folder and not all(path.exists() for path in candidate.watched)):
        return False
    return any(path.is_relative_to(watched) for watched in candidate.watched for path in changed)


@asynccontextmanager
async def _background() -> AsyncIterator[anyio.abc.TaskGroup]:
    """Runs tasks beside the body. What the body raises comes out as it is, not wrapped in a group of one."""
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            try:
                yield group
            except BaseException as error:
                raised = error
                raise
            finally:
                group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        if errors.exceptions != (raised,):
            raise
    else:
        return
    assert raised is not None
    raise raised


def _handed_over(plugins: Plugins, base: Path) -> tuple[list[Candidate], list[PluginSpec]]:
    pairs = plugins.items() if isinstance(plugins, Mapping) else ((None, each) for each in plugins)
    objects, specs = [], []
    for name, each in pairs:
        if isinstance(each, (str, Path)):
            text = str(each) if isinstance(each, str) else str(each.absolute())
            specs.append(PluginSpec(text=text, base=base, origin="the host's plugins argument"))
        else:
            objects.append(from_object(each, name))
    return objects, specs


def config_folder(environ: Mapping[str, str]) -> Path:
    """Returns where the person's configuration is."""
    if environ.get("OPENCODE_CONFIG_DIR"):
        return Path(environ["OPENCODE_CONFIG_DIR"])
    import platformdirs

    return platformdirs.user_config_path("opencode")


def data_folder(environ: Mapping[str, str]) -> Path:
    """Returns where hosts keep what they must remember."""
    if environ.get("OPENCODE_DATA_DIR"):
        return Path(environ["OPENCODE_DATA_DIR"])
    import platformdirs

    return platformdirs.user_data_path("opencode")
