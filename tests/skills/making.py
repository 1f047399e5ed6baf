"""What the tests of skills are made of: a host with the plugin and one agent, files with skills in them, calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from opencode_core.host import Host
from opencode_core.model.permission import PermissionAnswer
from opencode_core.tools.registry import Settlement, materialize
from plugin_sdk import Agent, PermissionRule, Skill, ToolCall, hookimpl
from plugins_builtin import skills as plugin

CONFIGURING = "configure-opencode"
"""The skill that is always there."""


def rule(pattern: str, action: PermissionAnswer) -> PermissionRule:
    return PermissionRule(permission="skill", pattern=pattern, action=action)


ALLOWED = (rule("*", "allow"),)
DENIED = (rule("*", "deny"),)


@attrs.define(eq=False)
class Agents:
    """Contributes one agent."""

    rules: tuple[PermissionRule, ...]

    @hookimpl
    def opencode_agents(self) -> Iterator[Agent]:
        yield Agent(name="build", permission=self.rules)


@attrs.define(eq=False)
class Contributed:
    """Contributes skills that are in no file."""

    skills: tuple[Skill, ...]

    @hookimpl
    def opencode_skills(self) -> Iterator[Skill]:
        yield from self.skills


@asynccontextmanager
async def opened(
    directory: Path,
    *,
    rules: tuple[PermissionRule, ...] | None = ALLOWED,
    skills: tuple[Skill, ...] = (),
    config: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Host]:
    """Open a host with the plugin, and an agent with these rules; without rules nobody defines the agent."""
    plugins: dict[str, object] = {"skills": plugin, "contributed": Contributed(skills)}
    if rules is not None:
        plugins["agents"] = Agents(rules)
    config = {"plugin_strict": True, **(config or {})}
    async with Host.open(directory, plugins=plugins, config=config, entry_points=False, **settings) as host:
        yield host


async def found(host: Host) -> Mapping[str, Skill]:
    """Return every skill in effect."""
    return await host.plugins.registry.services.skills(host.location.read())


async def bodies(host: Host) -> dict[str, str]:
    """Return what every skill says, but for the one that is always there."""
    return {name: skill.body for name, skill in (await found(host)).items() if name != CONFIGURING}


async def told(host: Host) -> str:
    """Return what a new session is told of skills; empty when nothing."""
    return dict((await host.baseline()).parts).get("core/skills", "")


async def call(host: Host, name: object, *, agent: str = "build", gate: Any = None) -> Settlement:
    """Call the tool as the model would."""
    request = ToolCall(id="call", name="skill", arguments={"name": name}, session="ses", agent=agent)  # type: ignore[dict-item]
    return await materialize(host.location.read, gate=gate).settle(request)


def warnings(host: Host) -> list[str]:
    """Return what people are told is odd."""
    return [each.problem for each in host.plugins.get("skills").diagnostics]


def skill_text(name: str = "", description: str = "", body: str = "Do it.", **head: str) -> str:
    """Return the text of a skill file."""
    head = {**({"name": name} if name else {}), **({"description": description} if description else {}), **head}
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    return f"---\n{lines}---\n\n{body}\n"


def write(path: Path, text: str | bytes = "") -> Path:
    """Write a file, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
