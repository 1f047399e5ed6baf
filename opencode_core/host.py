"""The composition root: settings, then plugins, then Locations. The only place that wires."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import anyio.abc
import attrs

from opencode_core.bus import Bus
from opencode_core.clock import Clock, SystemClock
from opencode_core.config import Document, Documents, PluginSettings, PluginSpec, plugin_settings, storage_setting
from opencode_core.context.compose import compose
from opencode_core.context.observer import Observer
from opencode_core.control import serve_control
from opencode_core.errors import ConfigError, PluginError, ScopeClosedError
from opencode_core.ids import Ids
from opencode_core.model.catalog import Catalog, CatalogDraft
from opencode_core.model.context import Baseline, Boundary, Observation, SystemContext
from opencode_core.model.event.base import Event, Recorded
from opencode_core.model.event.plugin import CatalogUpdated
from opencode_core.model.json import JSON
from opencode_core.model.keys import check_plugin_name
from opencode_core.model.location import Location
from opencode_core.plugins.boarding import Boarding, Survey
from opencode_core.plugins.calls import tell
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.directory import PluginDirectory
from opencode_core.plugins.finder import Ask, Finder
from opencode_core.plugins.hot import HotReload
from opencode_core.plugins.loader import from_object
from opencode_core.plugins.packages import Installer, PipInstaller
from opencode_core.plugins.place import Place
from opencode_core.plugins.replay import Replayed
from opencode_core.plugins.scope import Attachment, Contribution, Owner, Registry, Scope, View
from opencode_core.plugins.services import HostServices
from opencode_core.plugins.slots import RUNTIME_HOOKS, STORAGE_BACKENDS
from opencode_core.plugins.trust import TrustStore
from opencode_core.plugins.watch import Watcher
from opencode_core.ports.scope import HostFacts
from opencode_core.ports.storage import Storage, StorageFactory
from opencode_core.project import find_location
from opencode_core.session.selecting import select_agent
from opencode_core.storage.keeping import Kept
from opencode_core.storage.live import event_bus
from opencode_core.storage.telling import Teller

if TYPE_CHECKING:
    from opencode_core.session.boundary import Boundaries
    from opencode_core.session.store import SessionStore
    from opencode_core.storage.log import EventLog

Plugins = Mapping[str, object] | Iterable[object]


@attrs.define(eq=False, repr=False, kw_only=True)
class Host:
    """An open host: its plugins, its Locations, its events. Made by `Host.open`.

    Attributes:
        plugins: Who is here now: list, add, remove, reload.
        events: What happens, as it happens.
        location: The Location that the host was opened in.
        storage_url: Which store `log` opens, secrets and all; empty when the application handed one over.
    """

    plugins: PluginDirectory
    events: Bus[Event]
    location: Place = attrs.field(init=False)
    storage_url: str
    _clock: Clock
    _scope: Scope
    _boarding: Boarding = attrs.field(init=False)
    _store: Kept = attrs.field(init=False)
    _teller: Teller = attrs.field(init=False)
    _observer: Observer = attrs.field(init=False)
    _log: EventLog | None = attrs.field(init=False, default=None)

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
        storage: str | Storage | None = None,
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
            storage: The URL of the store, or an open one, which stays open; None for what is configured. A store that
                is named is opened when it is first used.

        Raises:
            ConfigError: The directory or the configuration is wrong.
            InvalidKeyError: A name in ``plugins`` is not a plugin name.
            TrustError: The record of trusted projects is damaged.
            PluginError: A plugin failed, and the settings are strict.
        """
        environment = os.environ if environ is None else environ
        location = find_location(directory)
        documents = Documents(config, config_dir or config_folder(environment), environment)
        found = documents.of(location)
        settings = plugin_settings(document for document in found if document.folder is None)
        data = data_dir or data_folder(environment)
        if storage is None:
            storage = environment.get("OPENCODE_STORAGE") or storage_setting(found) or _default_store(data)
        clock = clock or SystemClock()
        finder = Finder(
            trust=TrustStore(data / "trust.toml"),
            ask=ask_trust,
            installer=installer or PipInstaller(data / "packages"),
            clock=clock,
            entry_points=entry_points,
        )
        facts = HostFacts(environ=environment, config_dir=documents.config_dir, data_dir=data, now=clock.now)
        host = cls._make(settings, documents, finder, clock, cleanup_deadline, storage)
        host.plugins.registry.services = HostServices(facts, host.plugins)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(host._close)
            host._warn_about_storage(found)
            await host._start(location, plugins)
            group = await stack.enter_async_context(_background())
            group.start_soon(host._teller.run)
            stack.push_async_callback(host._teller.drain, cleanup_deadline)
            if control:
                await group.start(serve_control, host.plugins, str(location.directory), data / "hosts")
            if settings.watch if watch is None else watch:
                hot = HotReload(directory=host.plugins, boarding=host._boarding)
                watcher = Watcher(
                    paths=hot.watched, on_change=hot.on_files, on_fault=hot.on_fault, moved=host.plugins.next_change
                )
                await group.start(watcher.run)
            yield host

    @classmethod
    def _make(
        cls,
        settings: PluginSettings,
        documents: Documents,
        finder: Finder,
        clock: Clock,
        deadline: float,
        storage: str | Storage,
    ) -> Host:
        registry = Registry(cleanup_deadline=deadline)
        scope = registry.open("host")
        events = event_bus()

        async def tell_plugins(event: Event) -> None:
            await host.tell(event)

        async def find_again(candidate: Candidate) -> Candidate:
            return await host._boarding.find_again(candidate)

        directory = PluginDirectory(
            registry=registry,
            host_scope=scope,
            settings=settings,
            clock=clock,
            announce=events.publish,
            tell=tell_plugins,
            find_again=find_again,
        )
        url = storage if isinstance(storage, str) else ""
        host = cls(plugins=directory, events=events, scope=scope, clock=clock, storage_url=url)
        host._boarding = Boarding(directory=directory, finder=finder, settings=settings, documents=documents)
        host._store = Kept(lambda: host._open_store(storage), closes=isinstance(storage, str))
        host._teller = Teller(host.tell, lambda: registry.holds_any(RUNTIME_HOOKS["opencode_event"]))
        return host

    @_observer.default
    def _make_observer(self) -> Observer:
        return Observer(self.plugins.report, self.plugins.failed_in)

    def read(self) -> View:
        """Returns everything that is contributed to the whole host now."""
        return self._scope.read()

    def attach(self, name: str) -> Attachment:
        """Opens a part of the host scope for the application itself, to register tools and context in."""
        return self._scope.attach(Owner(name, "host"))

    def storage_backends(self) -> Mapping[str, StorageFactory]:
        """Returns who opens stores, by the scheme of their URLs."""
        return {each.key: each.value for each in self.read().all(STORAGE_BACKENDS)}

    async def log(self) -> EventLog:
        """Returns the log of all sessions; the first use opens the store.

        What is appended is told to subscribers of ``events``, and then, in order and without holding up anybody, to
        plugins.

        Raises:
            StorageClosedError: The host was closed.
            StorageUrlError: The URL of the store is wrong, or no plugin offers its scheme.
            StorageVersionError: The store was written by a newer version.
            StorageForeignError: Something else is where the store should be.
            StorageDamagedError: The store is broken, or a copy that was never finished.
            StorageError: The store cannot be reached, read or written.
        """
        storage = await self._store.get()
        if self._log is None:
            from opencode_core.storage.log import EventLog  # with all events, which a host without sessions never needs

            self._log = EventLog(storage=storage, bus=self.events, ids=Ids(self._milliseconds))
            self.events.listen(self._teller.hear, Recorded)
        return self._log

    async def sessions(self) -> SessionStore:
        """Returns all sessions of the store, to create, read and change them; the first use opens the store.

        Raises:
            StorageError: As `log` does.
        """
        from opencode_core.session.store import SessionStore

        log = await self.log()
        return SessionStore(log=log, ids=log.ids, now=self._milliseconds, version=distribution_version())

    async def publish(self, event: Event) -> None:
        """Tells subscribers and plugins what happened; a fault of one is nobody else's."""
        self.events.publish(event)
        await self.tell(event)

    async def tell(self, event: Event) -> None:
        """Tells plugins what happened, each once, in order; a fault of one is nobody else's."""
        if not self.plugins.registry.holds_any(RUNTIME_HOOKS["opencode_event"]):
            return
        views = [self.read(), *(place.read() for place in self.plugins.places)]
        await tell(views, event, on_fault=self.on_fault, deadline=self.plugins.registry.cleanup_deadline)

    def on_fault(self, contribution: Contribution[Any], error: PluginError) -> None:
        """Keeps the fault of a hook as a diagnostic of its plugin."""
        self.plugins.report(contribution.owner.name, error)

    async def context(self, place: Place | None = None) -> SystemContext:
        """Composes the System Context of a Location, the host's own by default."""
        return await compose((place or self.location).read())

    async def observe(self, place: Place | None = None, *, agent: str | None = None) -> Observation:
        """Observes what a new session in a Location would be told, the host's own by default.

        Args:
            place: The Location.
            agent: For which agent; None for the one that is selected without being named.
        """
        place = place or self.location
        view = place.read()
        _name, definition = select_agent(view, agent)
        return await self._observer.observe(view, Boundary(location=place.location, agent=definition))

    async def baseline(self, place: Place | None = None, *, agent: str | None = None) -> Baseline:
        """Renders what a new session in a Location would be told, the host's own by default.

        Raises:
            InitializationBlockedError: A required source is unavailable, or cannot be rendered.
        """
        from opencode_core.context.epoch import Begin, decide
        from opencode_core.context.standing import Standing

        observation = await self.observe(place, agent=agent)
        step = decide(Standing(epoch=None), observation, on_fault=self._observer.on_source_fault)
        assert isinstance(step, Begin)
        return step.baseline

    async def boundaries(self, place: Place | None = None, *, sessions: SessionStore | None = None) -> Boundaries:
        """Returns what crosses the boundaries of the sessions in a Location, the host's own by default.

        Args:
            place: The Location.
            sessions: The sessions, of another store perhaps; None for those of the host's own.

        Raises:
            StorageError: As `log` does.
        """
        from opencode_core.session.boundary import Boundaries

        place = place or self.location
        return Boundaries(
            store=await self.sessions() if sessions is None else sessions,
            location=place.location,
            read=place.read,
            observe=self._observer.observe,
            on_fault=self._observer.on_source_fault,
        )

    @asynccontextmanager
    async def open_location(self, directory: Path | str) -> AsyncIterator[Place]:
        """Opens another Location, with what plugins contribute to it, and closes it again.

        Raises:
            ConfigError: The directory or the configuration in it is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: A plugin failed, and the settings are strict.
        """
        location = find_location(directory)
        self._warn_about_storage(self._boarding.documents.of(location))
        async with self._closing(await self._open_place(await self._boarding.survey(location))) as place:
            yield place

    async def refresh(self) -> None:
        """Looks at the projects' plugin folders again: new plugins are added, those that are gone are removed.

        Raises:
            ConfigError: The configuration of a project is wrong.
            TrustError: The record of trusted projects cannot be read or written.
            PluginError: A plugin failed, and the settings are strict.
        """
        await self._boarding.refresh()

    async def _start(self, location: Location, plugins: Plugins) -> None:
        objects, specs = _handed_over(plugins, location.directory)
        survey = await self._boarding.survey(location)
        await self._boarding.board_host(specs, objects, survey)
        self.location = await self._open_place(survey)
        self._boarding.warn_about_options()

    async def _open_place(self, survey: Survey) -> Place:
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
                await self._boarding.board(part, place)
            self._boarding.warn_about_names(place)
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
                with suppress(ScopeClosedError):  # the host closed meanwhile, and the Location with it
                    await self.plugins.close_place(place)
                await place.scope.aclose()

    def _milliseconds(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    async def _open_store(self, storage: str | Storage) -> Storage:
        from opencode_core.storage.opening import make_ready, open_storage

        if isinstance(storage, str):
            return await open_storage(storage, self.storage_backends())
        await make_ready(storage)
        return storage

    def _warn_about_storage(self, documents: Iterable[Document]) -> None:
        for document in documents:
            if document.folder is not None and "storage" in document.values:
                self.plugins.warn(
                    "",
                    f"The key 'storage' in '{document.origin}' is ignored: a project does not choose where sessions are"
                    " kept.",
                    "Put it into your own configuration, or set OPENCODE_STORAGE.",
                )

    def _on_catalog(self, location: Location) -> Any:
        def publish(_catalog: Catalog) -> None:
            self.events.publish(CatalogUpdated(directory=str(location.directory)))

        return publish

    async def _close(self) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self.plugins.aclose()
        finally:
            self.events.close()
            with anyio.CancelScope(shield=True):
                await self._store.aclose()  # last, so that clean-ups could still append


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
    if isinstance(plugins, (str, bytes, Path)):
        raise ConfigError("The argument 'plugins' is one text, not a list of plugins.", "Put it in a list.")
    pairs = plugins.items() if isinstance(plugins, Mapping) else ((None, each) for each in plugins)
    objects, specs = [], []
    for name, each in pairs:
        if name is not None:
            check_plugin_name(name)
        if isinstance(each, (str, Path)):
            text = str(each) if isinstance(each, str) else str(each.absolute())
            specs.append(PluginSpec(text=text, base=base, origin="the host's plugins argument", name=name or ""))
        else:
            objects.append(from_object(each, name))
    return objects, specs


def _default_store(data: Path) -> str:
    return f"sqlite://{quote((data / 'opencode.db').absolute().as_posix())}"


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


def distribution_version() -> str:
    """Returns the version of this distribution; empty when it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("opencode-core")
    except PackageNotFoundError:
        return ""
