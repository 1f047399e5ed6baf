"""What a plugin may do with the scope that a contribution hook hands it. Grants nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import attrs

from opencode_core.model.context import ContextProducer
from opencode_core.model.skill import FoundSkills
from opencode_core.model.tool import Tool

T = TypeVar("T")

Cleanup: TypeAlias = Callable[[], Awaitable[object] | object]


@attrs.frozen(kw_only=True)
class HostFacts:
    """What a plugin may know of the host around it.

    Attributes:
        environ: The environment variables, as they are when they are looked at.
        config_dir: Where the person's own configuration is.
        data_dir: Where the host keeps what it must remember; a plugin keeps its own in a folder of its name there.
        now: Tells the time, with the host's time zone.
    """

    environ: Mapping[str, str] = attrs.field(repr=False)
    config_dir: Path
    data_dir: Path
    now: Callable[[], datetime]

    @property
    def home(self) -> Path | None:
        """The person's home folder; None when the environment names none."""
        named = self.environ.get("HOME") or self.environ.get("USERPROFILE")
        return Path(named) if named else None

    def located(self, path: str, base: Path) -> Path:
        """Returns where a configured path leads: ``~/`` to the home, a relative one from a base; resolves no link."""
        if path.startswith("~/") and self.home is not None:
            return self.home / path[2:]
        return base / path


class Registration(Protocol):
    """One thing that was added while the scope was open."""

    def close(self) -> None:
        """Takes it back; twice is harmless, and so is closing it after its scope."""
        ...


class PluginScope(Protocol):
    """One plugin's part of a host, Location or session scope; it ends with that scope or at the plugin's reload."""

    @property
    def name(self) -> str:
        """Which scope it is, such as ``host`` or a Location's directory."""
        ...

    @property
    def host(self) -> HostFacts:
        """The host around it."""
        ...

    def share(self, kind: type[T], make: Callable[[], T]) -> T:
        """Returns the plugin's own object of a kind in this scope, made when it is first asked for.

        So that two hooks of one plugin, asked for the same scope, work on the same thing.
        """
        ...

    def warn(self, problem: str, remedy: str = "") -> None:
        """Tells people what is odd, once, beside the plugin's name; nothing else changes.

        Args:
            problem: What happened, one sentence. Never a secret.
            remedy: What to do next, one sentence.
        """
        ...

    async def skills(self) -> FoundSkills:
        """Returns every skill that is in effect here now, by name in order, whoever contributes it.

        It says so itself when it may not be complete, because a source of skills could never be asked yet.
        """
        ...

    def on_close(self, cleanup: Cleanup) -> None:
        """Runs a function, plain or async, when this scope ends: last added, first run, under a deadline.

        A plain function runs in a thread of its own, so that one that never returns holds up nobody.

        Raises:
            ScopeClosedError: The scope has ended already.
        """
        ...

    def add_context(self, key: str, producer: ContextProducer) -> Registration:
        """Adds an entry to the System Context now; its producer is asked at every turn for the sources in it.

        Raises:
            DuplicateKeyError: Somebody visible from here has that entry key.
            InvalidKeyError: The key has no namespace.
            TypeError: The producer is not a function.
            ScopeClosedError: The scope has ended already.
        """
        ...

    def add_tool(self, name: str, tool: Tool) -> Registration:
        """Adds a tool now, between two turns of a running session, for sources that appear later.

        Raises:
            InvalidKeyError: The name does not follow the grammar of tool names.
            TypeError: The tool is not one.
            ScopeClosedError: The scope has ended already.
        """
        ...
