"""Names every kind of contribution. Holds none."""

from __future__ import annotations

from typing import Any

import attrs

from opencode_core.model.agent import Agent
from opencode_core.model.command import Command
from opencode_core.model.context import ContextProducer, ContextSource
from opencode_core.model.skill import Skill, SkillSource
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
    "SKILL_SOURCES",
    "STORAGE_BACKENDS",
    "TOOLS",
    "BoundHook",
    "ContextProducer",
    "RememberedSkills",
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


@attrs.define(eq=False)
class RememberedSkills:
    """A source, and what it found last; None when it never could be asked."""

    source: SkillSource
    found: tuple[Skill, ...] | None = None

    async def load(self) -> tuple[Skill, ...]:
        """Looks again.

        Raises:
            Exception: Whatever the source raised; what was found last stays.
        """
        found = tuple(await self.source.load())
        for each in found:
            if not isinstance(each, Skill):
                raise TypeError(f"the skill source '{self.source.key}' found a '{type(each).__name__}', not a Skill")
        self.found = found
        return found


CONTEXT_SOURCES: Slot[tuple[ContextSource[Any], ...]] = Slot("context_sources", "context source")
AGENTS: Slot[Agent] = Slot("agents", "agent", overlays=True)
COMMANDS: Slot[Command] = Slot("commands", "command", overlays=True)
SKILLS: Slot[Skill] = Slot("skills", "skill", overlays=True)
SKILL_SOURCES: Slot[RememberedSkills] = Slot("skill_sources", "skill source")
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
