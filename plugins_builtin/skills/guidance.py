"""Tells the model which skills its agent may use: names and descriptions, never bodies or where they are."""

from __future__ import annotations

from collections.abc import Mapping

from plugin_sdk import (
    ABSENT,
    JSON,
    UNAVAILABLE,
    Absent,
    Agent,
    Boundary,
    ContextSource,
    PluginScope,
    Skill,
    Unavailable,
    evaluate_rules,
)
from plugin_sdk.text import one_line

_HOW = "Each holds instructions for one kind of task: before you begin such a task, load it with the tool `skill`."


def skill_guidance(scope: PluginScope) -> ContextSource[dict[str, str]]:
    """Returns the context source: the descriptions of the visible skills, by name in order.

    An agent that nobody defines is told nothing, and so is one that may use no skill at all. Whoever may use some, but
    finds none, is told that, also at first: the source cannot know whether there were some before.

    Args:
        scope: Whose skills they are.
    """

    async def load(boundary: Boundary) -> dict[str, str] | Absent | Unavailable:
        if boundary.agent is None:
            return ABSENT
        skills = await scope.skills()
        if not skills.is_complete:  # what is missing must not be told as gone
            return UNAVAILABLE
        listed = visible(boundary.agent, skills)
        if not listed and evaluate_rules(boundary.agent.permission, "skill", "*") == "deny":
            return ABSENT
        return listed

    return ContextSource(
        key="core/skills",
        load=load,
        baseline=lambda listed: _list(listed, f"These skills are available. {_HOW}", "No skills are available."),
        update=lambda _before, listed: _list(
            listed, f"The available skills have changed; these are all of them. {_HOW}", "No skills are available now."
        ),
        removed=lambda _listed: "You may not use skills any more: none of those that were listed is available.",
        decode=_decoded,
        required=False,  # a folder on a disk that hangs must not keep a session from starting
    )


def visible(agent: Agent, skills: Mapping[str, Skill]) -> dict[str, str]:
    """Returns the descriptions of the skills that an agent is told of, by name in order."""
    return {
        name: one_line(skill.description)
        for name, skill in sorted(skills.items())
        if one_line(skill.description) and evaluate_rules(agent.permission, "skill", name) != "deny"
    }


def _list(listed: Mapping[str, str], before: str, none: str) -> str:
    lines = [f"- {one_line(name)}: {description}" for name, description in sorted(listed.items())]
    return "\n".join([before, *lines]) if lines else none


def _decoded(stored: JSON) -> dict[str, str]:
    if not isinstance(stored, Mapping) or not all(isinstance(each, str) for each in stored.values()):
        raise TypeError("what was told of skills is not a table of texts")
    return {name: str(each) for name, each in stored.items()}
