"""Selects the agent of a turn. Changes no session."""

from __future__ import annotations

from opencode_core.model.agent import Agent
from opencode_core.plugins.scope import View
from opencode_core.plugins.slots import AGENTS

DEFAULT = "build"


def select_agent(view: View, name: str | None) -> tuple[str, Agent | None]:
    """Returns the name of the agent of a turn, and its definition.

    Without a name it is ``build``, or else the first that people may select. One that nobody defines is selected all
    the same, without a definition: the session was told to use it, and must not silently use another.
    """
    if name is None:
        selectable = [each.key for each in view.all(AGENTS) if each.value.mode != "subagent"]
        name = DEFAULT if DEFAULT in selectable or not selectable else selectable[0]
    found = view.find(AGENTS, name)
    return name, None if found is None else found.value
