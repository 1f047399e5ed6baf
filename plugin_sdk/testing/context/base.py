"""What the tests of every law share: the world of a test, and a plugin loaded into it. Tests nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import attrs
import pytest

from opencode_core.context.reconcile import initialize, reconcile
from opencode_core.errors import InitializationBlockedError, SourceFaultError
from opencode_core.model.context import UNAVAILABLE, Baseline, ContextSource, Observation, Reconciled, Snapshot
from opencode_core.model.json import JSON, plain
from plugin_sdk.testing import LoadedPlugin, StillClock, load_plugin
from plugin_sdk.testing.storage.base import broken


class ContextLaws:
    """The world of one test, and how the plugin is loaded into it.

    Attributes:
        plugin: What contributes the source.
        key: The key of the source.
        options: The plugin's options.
        removable: Whether the source has a text for when it is gone.
        patience: How many seconds something that must happen may take before the test says that it does not.
        clock: The time of this world.
        environ: Its environment variables.
        config_dir: Where the person's own configuration is in it.
    """

    # An async test runs on each event loop that is installed, whichever mode the plugin of anyio is in.
    pytestmark: ClassVar[Any] = pytest.mark.anyio

    plugin: ClassVar[object]
    key: ClassVar[str]
    options: ClassVar[Mapping[str, JSON] | None] = None
    removable: ClassVar[bool] = True
    patience: ClassVar[float] = 30.0
    clock: StillClock
    environ: dict[str, str]
    config_dir: Path

    def __init_subclass__(
        cls,
        *,
        plugin: object = None,
        key: str | None = None,
        options: Mapping[str, JSON] | None = None,
        removable: bool | None = None,
    ) -> None:
        super().__init_subclass__()
        given = {"plugin": plugin, "key": key, "options": options, "removable": removable}
        for name, value in given.items():
            if value is not None:
                setattr(cls, name, value)

    def prepare(self, directory: Path) -> None:
        """Makes what the source observes, in an empty folder, before the plugin is loaded; override it."""

    def change(self, directory: Path) -> None:
        """Changes what the source observes; override it."""

    def take_away(self, directory: Path) -> None:
        """Takes away what the source observes, so that there is nothing to tell; override it."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        """The Location: a folder of its own for each test, after ``prepare``."""
        return self.world(tmp_path)

    def world(self, folder: Path) -> Path:
        """Makes the world of one test in an empty folder, and returns the Location in it."""
        directory, self.config_dir = folder / "project", folder / "config"
        self.clock, self.environ = StillClock(), {}
        for each in (directory, self.config_dir):
            each.mkdir()
        self.prepare(directory)
        return directory

    @asynccontextmanager
    async def loaded(self, directory: Path) -> AsyncIterator[Subject]:
        """Opens a host with the plugin alone in it."""
        async with load_plugin(
            self.plugin,
            directory=directory,
            options=self.options,
            clock=self.clock,
            environ=self.environ,
            config_dir=self.config_dir,
        ) as plugin:
            yield Subject(plugin, self.key)

    def needs_change(self) -> None:
        """Leaves out a test of what happens when the value changes."""
        if type(self).change is ContextLaws.change:
            pytest.skip("This suite has no 'change(directory)', so nothing changes in it.")

    def needs_take_away(self) -> None:
        """Leaves out a test of what happens when there is nothing to tell any more."""
        if type(self).take_away is ContextLaws.take_away:
            pytest.skip("This suite has no 'take_away(directory)', so there is always something to tell.")

    @contextmanager
    def soon(self, law: str, what: str) -> Iterator[None]:
        """Says which law is broken if something takes too long, also if it does not let itself be cancelled."""
        began, late = anyio.current_time(), broken(law, f"{what}, but it did not within {self.patience} seconds")
        try:
            with anyio.fail_after(self.patience):
                yield
        except TimeoutError as error:
            raise late from error
        if anyio.current_time() - began > self.patience:
            raise late


@attrs.frozen(eq=False)
class Subject:
    """A loaded plugin, and the one source of it that the tests are about."""

    plugin: LoadedPlugin
    key: str

    async def source(self) -> ContextSource[Any]:
        """Returns the source."""
        sources = await self.plugin.sources()
        if self.key not in sources:
            others = ", ".join(f"'{key}'" for key in sources) or "none"
            raise broken("contribution", f"the plugin has no context source '{self.key}'; those it has: {others}")
        return sources[self.key]

    async def observe(self) -> Observation:
        """Observes everything that the plugin contributes, as a boundary does."""
        return await self.plugin.host.observe()

    async def value(self) -> Any:
        """Returns what the source is now."""
        await self.source()
        observation = await self.observe()
        if self.key not in observation.values:
            raise broken("observation", f"the source '{self.key}' has nothing to tell (ABSENT) in the prepared folder")
        value = observation.values[self.key]
        if value is UNAVAILABLE:
            reason = observation.reasons.get(self.key, "")
            law = "the deadline" if reason.startswith("it did not answer") else "observation"
            raise broken(law, f"the source '{self.key}' is unavailable in the prepared folder: {reason}")
        return value

    async def encoded(self) -> JSON:
        """Returns what would be stored of the source now."""
        return encoded(await self.source(), await self.value())

    async def told(self) -> Baseline:
        """Returns what a new session would be told."""
        await self.value()
        with lawfully():
            return initialize(await self.observe())

    async def reconciled(self, snapshot: Snapshot) -> Reconciled:
        """Compares what is now with what was told."""
        with lawfully():
            return reconcile(await self.observe(), snapshot)


@contextmanager
def lawfully() -> Iterator[None]:
    """Says which law a source breaks that the kernel refuses."""
    try:
        yield
    except SourceFaultError as error:
        raise broken("the codec" if error.stage == "encode" else "rendering", error.problem.rstrip(".")) from error
    except InitializationBlockedError as error:
        raise broken("observation", error.problem.rstrip(".")) from error


def encoded(source: ContextSource[Any], value: Any) -> JSON:
    """Returns the JSON that is stored of a value."""
    try:
        return plain(source.encode(value))
    except Exception as error:
        raise _failed("the codec", "'encode'", error) from error


def decoded(source: ContextSource[Any], stored: JSON) -> Any:
    """Returns the value that stored JSON stands for."""
    try:
        return source.decode(stored)
    except Exception as error:
        raise _failed("the codec", "'decode', given what 'encode' returned,", error) from error


def rendered(name: str, render: Callable[..., str], *values: Any) -> str:
    """Returns what a rendering says, which is text, is not empty, and is the same twice."""
    try:
        texts: list[object] = [render(*values), render(*values)]
    except Exception as error:
        raise _failed("rendering", f"'{name}'", error) from error
    text, again = texts
    if not isinstance(text, str):
        raise broken("rendering", f"'{name}' returned a '{type(text).__name__}', not text")
    if not text.strip():
        raise broken("rendering", f"'{name}' returned nothing that can be read")
    if text != again:
        raise broken("rendering", f"'{name}' said something else the second time: {text!r}, then {again!r}")
    return text


def _failed(law: str, what: str, error: Exception) -> AssertionError:
    return broken(law, f"{what} raised {type(error).__name__}: {error}")
