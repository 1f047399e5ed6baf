"""Decides by an agent's rules what a call may do. Asks nobody: what would have to be asked is refused."""

from __future__ import annotations

from collections.abc import Callable

from opencode_core.errors import PermissionBlockedError
from opencode_core.model.permission import PermissionRequest, evaluate_rules
from opencode_core.model.tool import Gate
from opencode_core.plugins.scope import View
from opencode_core.plugins.slots import AGENTS


def gate_of(read: Callable[[], View]) -> Gate:
    """Returns a gate that knows the agents of a scope; one that nobody defines may do nothing.

    Args:
        read: Reads the scope, each time something is asked.
    """

    async def gate(request: PermissionRequest) -> None:
        agent = read().find(AGENTS, request.agent)
        if agent is None:
            raise PermissionBlockedError(request.action, request.resources, f"no agent is called '{request.agent}'")
        answers = {evaluate_rules(agent.value.permission, request.action, each) for each in request.resources}
        if "deny" in answers:
            raise PermissionBlockedError(request.action, request.resources, "a rule of the agent denies it")
        if "ask" in answers:
            raise PermissionBlockedError(request.action, request.resources, "nobody is there to ask")

    return gate
