"""Finds the skills that a view shows: those contributed once, and those of sources that look again each time."""

from __future__ import annotations

from collections.abc import Callable

from opencode_core.errors import PluginError
from opencode_core.model.skill import Skill
from opencode_core.plugins.diagnostics import hook_error
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import SKILL_SOURCES, SKILLS, RememberedSkills


async def find_skills(view: View, on_fault: Callable[[str, PluginError], None]) -> dict[str, Skill]:
    """Returns the skills in effect by name in order; of two with one name, the one of the later plugin.

    Args:
        view: What is contributed.
        on_fault: Is told of a source that failed, with the name of its plugin; what it found last is used.
    """
    found: dict[str, Skill] = {}
    contributions: list[Contribution[Skill] | Contribution[RememberedSkills]] = [
        *view.all(SKILLS),
        *view.all(SKILL_SOURCES),
    ]
    for each in sorted(contributions, key=lambda each: each.precedence):
        value = each.value
        if isinstance(value, Skill):
            found[value.name] = value
            continue
        try:
            skills = await value.load()
        except (Exception, SystemExit) as error:
            on_fault(each.owner.name, hook_error(each.owner.name, "opencode_skills", error))
            skills = value.found
        found.update((skill.name, skill) for skill in skills)
    return dict(sorted(found.items()))
