"""What an author tests a plugin with: the real kernel around one plugin, and nothing else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import attrs

from opencode_core.clock import Clock, SystemClock
from opencode_core.errors import ToolFailure
from opencode_core.host import Host
from opencode_core.lazy import lazy
from opencode_core.model.catalog import Catalog
from opencode_core.model.context import ContextSource
from opencode_core.model.json import JSON
from opencode_core.model.plugin import PluginStatus
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.plugins.scope import Slot
from opencode_core.plugins.slots import AGENTS, COMMANDS, SKILLS, TOOLS
from opencode_core.tools.registry import Completed, materialize

if TYPE_CHECKING:
    from plugin_sdk.testing.context_contract import ContextSourceContract
    from plugin_sdk.testing.storage_contract import StorageContract

__all__ = ["ContextSourceContract", "LoadedPlugin", "StillClock", "StorageContract", "load_plugin"]

# Imported when they are used, because they need pytest.
_CONTRACTS = {
    "ContextSourceContract": "plugin_sdk.testing.context_contract",
    "StorageContract": "plugin_sdk.testing.storage_contract",
}
__getattr__, _ = lazy(__name__, _CONTRACTS)


@attrs.frozen(eq=False)
class LoadedPlugin:
    """One plugin in a host of its own.

    Attributes:
        host: The host, for everything that is not below.
        name: The plugin's name in it.
    """

    host: Host
    name: str

    @property
    def status(self) -> PluginStatus:
        """What ``opencode-core plugins show`` would show."""
        return self.host.plugins.get(self.name)

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools it contributes, by name in order."""
        return {each.key: each.value for each in self.host.location.read().all(TOOLS)}

    @property
    def catalog(self) -> Catalog:
        """The catalog, after its edits."""
        return self.host.location.catalog.current

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The names of the agents, commands and skills it contributes, by kind."""
        view = self.host.location.read()
        slots: tuple[Slot[Any], ...] = (AGENTS, COMMANDS, SKILLS)
        return {slot.name: tuple(each.key for each in view.all(slot)) for slot in slots}

    async def sources(self) -> dict[str, ContextSource[Any]]:
        """Returns the context sources it contributes, by key in order."""
        return {source.key: source for source in (await self.host.context()).sources}

    async def baseline(self) -> str:
        """Returns what a new session would be told, exactly.

        Raises:
            InitializationBlockedError: A source is unavailable.
        """
        return (await self.host.baseline()).text

    async def call(self, tool: str, **arguments: JSON) -> ToolOutput:
        """Calls a tool as the model would.

        Raises:
            ToolFailure: The model would be told that it did not work.
        """
        call = ToolCall(id="call_test", name=tool, arguments=arguments, session="ses_test", agent="build")
        settlement = await materialize(self.host.location.read).settle(call)
        if isinstance(settlement, Completed):
            return settlement.output
        raise ToolFailure(settlement.message)

    async def reload(self) -> PluginStatus:
        """Imports a file or package anew.

        Raises:
            PluginError: The new code is not right; the old one goes on answering.
        """
        return await self.host.plugins.reload(self.name)


@attrs.define
class StillClock:
    """A clock whose calendar stands still until it is moved.

    Attributes:
        at: The time that it shows, with its zone; noon of a Monday at first, far from the end of a day.
    """

    at: datetime = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def now(self) -> datetime:
        """Returns the time that it shows."""
        return self.at

    def monotonic(self) -> float:
        """Returns seconds that never go back; these do not stand still."""
        return SystemClock().monotonic()

    def move(self, **span: float) -> None:
        """Moves it by a span of time, such as ``days=1``."""
        self.at += timedelta(**span)


@asynccontextmanager
async def load_plugin(
    plugin: object,
    *,
    directory: Path | str,
    options: Mapping[str, JSON] | None = None,
    name: str = "plugin_under_test",
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    config_dir: Path | None = None,
) -> AsyncIterator[LoadedPlugin]:
    """Opens a host with one plugin alone, strictly: whatever is wrong with it raises here.

    Args:
        plugin: A module or object with hooks, or the path of a file or package.
        directory: The Location; its configuration files are not read.
        options: What would stand under ``plugins.<name>`` in the configuration.
        name: The plugin's name.
        clock: The time, such as a `StillClock`; the machine's by default.
        environ: The environment variables; the process's by default.
        config_dir: Where the person's configuration is; by default where ``OPENCODE_CONFIG_DIR`` says, else an empty
            folder, never the real one.

    Raises:
        PluginError: The plugin does not follow the contract, or one of its hooks raised.
    """
    config: dict[str, JSON] = {"plugin_strict": True, "plugins": {name: dict(options or {})}}
    environment = os.environ if environ is None else environ
    if config_dir is None and environment.get("OPENCODE_CONFIG_DIR"):
        config_dir = Path(environment["OPENCODE_CONFIG_DIR"])
    with TemporaryDirectory() as folder:
        async with Host.open(
            directory,
            plugins={name: plugin},
            config=config,
            entry_points=False,
            clock=clock,
            environ=environment,
            config_dir=config_dir or Path(folder, "config"),
            data_dir=Path(folder, "data"),
        ) as host:
            yield LoadedPlugin(host, name)
