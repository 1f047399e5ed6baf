"""Finds the skills that a view shows: those contributed once, and those of sources that look again each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from opencode_core.errors import PluginError
from opencode_core.model.skill import FoundSkills, Skill
from opencode_core.plugins.diagnostics import hook_error
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import SKILL_SOURCES, SKILLS, RememberedSkills


async def find_skills(view: View, on_fault: Callable[[str, PluginError], None]) -> FoundSkills:
    """Returns the skills in effect by name in order; of two with one name, the one of the later plugin.

    Args:
        view: What is contributed.
        on_fault: Is told of a source that failed, with the name of its plugin; what it found last is used.
    """
    found: dict[str, Skill] = {}
    sources = view.all(SKILL_SOURCES)
    loaded = await _load(sources, on_fault)
    contributions: list[Contribution[Skill] | Contribution[RememberedSkills]] = [*view.all(SKILLS), *sources]
    for each in sorted(contributions, key=lambda each: each.precedence):
        skills = (each.value,) if isinstance(each.value, Skill) else loaded[each.identity]
        found.update((skill.name, skill) for skill in skills or ())
    skills_by_name = FoundSkills(sorted(found.items()))
    skills_by_name.is_complete = all(skills is not None for skills in loaded.values())
    return skills_by_name


async def _load(
    sources: Sequence[Contribution[RememberedSkills]], on_fault: Callable[[str, PluginError], None]
) -> dict[int, tuple[Skill, ...] | None]:
    """Asks all sources at once, because each may have to wait for a disk or a server."""
    loaded: dict[int, tuple[Skill, ...] | None] = {}

    async def load(each: Contribution[RememberedSkills]) -> None:
        try:
            loaded[each.identity] = await each.value.load()
        except (Exception, SystemExit) as error:
            on_fault(each.owner.name, hook_error(each.owner.name, "opencode_skills", error))
            loaded[each.identity] = each.value.found

    if len(sources) < 2:  # the usual case, which needs no task of its own
        for each in sources:
            await load(each)
        return loaded
    async with anyio.create_task_group() as group:
        for each in sources:
            group.start_soon(load, each)
    return loaded
