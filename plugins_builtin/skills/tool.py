"""Hands the model the body of a skill that it asks for by name, if its agent may have it. Lists no skill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import anyio.to_thread

from plugin_sdk import PermissionBlockedError, PluginScope, Skill, Tool, ToolCall, ToolFailure, ToolOutput
from plugin_sdk.text import shown
from plugins_builtin.skills.scanning import ENTRY

MOST_FILES = 10
MOST_NAMES = 1_000


def skill_tool(scope: PluginScope) -> Tool:
    """Returns the tool.

    Args:
        scope: Whose skills they are.
    """

    async def execute(call: ToolCall) -> ToolOutput:
        name = call.arguments.get("name")
        if not isinstance(name, str) or not name:
            raise ToolFailure("The argument 'name' has to be the name of a skill.")
        # Looked for first, so that nobody is asked to permit what does not exist.
        skill = (await scope.skills()).get(name)
        if skill is None:
            raise _unavailable(name)
        try:
            await call.authorize("skill", name, save=(name,))
        except PermissionBlockedError:
            # The same words as for one that does not exist: what is denied is not even known to be there.
            raise _unavailable(name) from None
        files = await anyio.to_thread.run_sync(_sample, skill, abandon_on_cancel=True)
        return ToolOutput(text=_render(skill, files), structured={"name": name}, title=f"Loaded the skill {name}")

    return Tool(
        description="Loads a skill: instructions for one kind of task, and the folder with the files that they need.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name of the skill, as it was listed."}},
            "required": ["name"],
            "additionalProperties": False,
        },
        execute=execute,
        effects=frozenset({"reads"}),
    )


def _unavailable(name: str) -> ToolFailure:
    return ToolFailure(f"The skill '{name}' is not available.")


def _render(skill: Skill, files: list[str]) -> str:
    parts = [f"# Skill: {skill.name}", skill.body]
    if skill.directory:
        parts.append(f"The paths in this skill are relative to its base directory: {shown(skill.directory)}")
    if files:
        parts.append("\n".join(["Some of the files in it:", *(f"- {each}" for each in files)]))
    return "\n\n".join(part for part in parts if part)


def _sample(skill: Skill) -> list[str]:
    if not skill.is_folder or not skill.directory:
        return []
    base = Path(skill.directory)
    files = (Path(each).relative_to(base).as_posix() for each in _files(skill.directory))
    return list(islice((each for each in files if each != ENTRY and each.isprintable()), MOST_FILES))


def _files(directory: str) -> Iterator[str]:
    """Yields the files below a folder in order, without links and without the folders of other skills."""
    waiting = _inside(directory)
    for _ in range(MOST_NAMES):
        if not waiting:
            return
        entry = waiting.pop()
        if entry.is_dir(follow_symlinks=False):
            inside = _inside(entry.path)
            if all(each.name != ENTRY for each in inside):
                waiting += inside
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def _inside(directory: str) -> list[os.DirEntry[str]]:
    """Returns what is in a folder and not hidden, last first."""
    try:
        with os.scandir(directory) as found:
            entries = [each for each in islice(found, MOST_NAMES) if not each.name.startswith(".")]
    except OSError:  # it is gone or closed: then there is nothing to show
        return []
    return sorted(entries, key=lambda each: each.name, reverse=True)
