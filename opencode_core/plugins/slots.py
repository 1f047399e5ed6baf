"""Names every kind of contribution. Holds none."""

from __future__ import annotations

from typing import Any

import attrs

from opencode_core.model.agent import Agent
from opencode_core.model.command import Command
from opencode_core.model.context import ContextProducer, ContextSource
from opencode_core.model.skill import Skill
from opencode_core.plugins.relay import Hooks
from opencode_core.plugins.scope import CONTEXT_PRODUCERS, TOOLS, Slot
from opencode_core.ports.provider import ProviderAdapter
from opencode_core.ports.storage import StorageFactory

__all__ = [
    "AGENTS",
    "COMMANDS",
    "CONTEXT_PRODUCERS",
    "CONTEXT_SOURCES",
    "PROVIDER_ADAPTERS",
    "RUNTIME_HOOKS",
    "SKILLS",
    "STORAGE_BACKENDS",
    "TOOLS",
    "BoundHook",
    "ContextProducer",
]


@attrs.frozen(eq=False)
class BoundHook:
    """A hook that is asked while a session runs, with the options of the plugin it belongs to."""

    hooks: Hooks
    name: str
    options: Any = attrs.field(repr=False)

    def call(self, **offered: Any) -> Any:
        """Asks it; what it raises comes through."""
        return self.hooks.call(self.name, options=self.options, **offered)


CONTEXT_SOURCES: Slot[tuple[ContextSource[Any], ...]] = Slot("context_sources", "context source")
AGENTS: Slot[Agent] = Slot("agents", "agent", overlays=True)
COMMANDS: Slot[Command] = Slot("commands", "command", overlays=True)
SKILLS: Slot[Skill] = Slot("skills", "skill", overlays=True)
PROVIDER_ADAPTERS: Slot[ProviderAdapter] = Slot("provider_adapters", "provider adapter")
STORAGE_BACKENDS: Slot[StorageFactory] = Slot("storage_backends", "storage scheme")

RUNTIME_HOOKS: dict[str, Slot[BoundHook]] = {
    name: Slot(name, f"'{name}' hook")
    for name in (
        "opencode_catalog",
        "opencode_pty_environment",
        "opencode_request",
        "opencode_tool_before",
        "opencode_tool_after",
        "opencode_permission",
        "opencode_text_complete",
        "opencode_compaction",
        "opencode_event",
    )
}
