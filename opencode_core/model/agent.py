"""What an agent is: a prompt, a model and rules under one name. Selects nothing."""

from __future__ import annotations

from typing import Literal

import attrs

from opencode_core.model.permission import PermissionRule


@attrs.frozen(kw_only=True)
class Agent:
    """One way of working that a person, or another agent, can select.

    Attributes:
        name: How it is selected, such as ``build``.
        description: When to use it, for people and for agents that delegate.
        prompt: Its own instructions, before the System Context.
        mode: Whether people select it, agents delegate to it, or both.
        model: ``provider/model`` that it prefers; empty for the session's.
        steps: How many Provider Turns it may take for one prompt; None for no limit.
        permission: What it may do, in order; the last rule that matches counts.
    """

    name: str
    description: str = ""
    prompt: str = ""
    mode: Literal["primary", "subagent", "all"] = "all"
    model: str = ""
    steps: int | None = None
    permission: tuple[PermissionRule, ...] = ()
