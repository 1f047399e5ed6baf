"""Gives the team a reviewer: an agent that reads and never writes, and a command that asks it."""

from __future__ import annotations

from collections.abc import Iterator

from plugin_sdk import Agent, Command, PluginManifest, hookimpl

opencode_plugin = PluginManifest(api=1, description="Adds a reviewer, and the command that asks it.")

PROMPT = """\
You review changes. You read the code and its tests, and you never edit a file.
Name each problem with its file and line, the worst first. Say what you did not look at.
"""


@hookimpl
def opencode_agents() -> Iterator[Agent]:
    """Contributes the agent ``acme-reviewer``."""
    yield Agent(name="acme-reviewer", description="Reviews a change, and writes nothing.", prompt=PROMPT)


@hookimpl
def opencode_commands() -> Iterator[Command]:
    """Contributes the command ``acme-review``, which the reviewer answers."""
    yield Command(
        name="acme-review",
        description="Reviews what differs from a branch.",
        template="Review everything that differs from $ARGUMENTS.",
        agent="acme-reviewer",
    )
