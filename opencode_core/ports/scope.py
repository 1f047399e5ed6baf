"""What a plugin may do with the scope that a contribution hook hands it. Grants nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from opencode_core.model.context import ContextProducer
from opencode_core.model.tool import Tool

Cleanup: TypeAlias = Callable[[], Awaitable[object] | object]


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
