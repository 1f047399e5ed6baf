"""What a call may do: the rules of the agent that it was made for decide, and what nobody permits is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from opencode_core.errors import PermissionBlockedError
from opencode_core.model.agent import Agent
from opencode_core.model.permission import PermissionRequest, PermissionRule
from opencode_core.model.tool import Tool, ToolCall, ToolOutput
from opencode_core.plugins.scope import Owner, Registry, Scope
from opencode_core.plugins.slots import AGENTS
from opencode_core.tools.registry import Completed, Refused, materialize


async def execute(call: ToolCall) -> ToolOutput:
    await call.authorize("edit", "a.py", "b.py", save=("*.py",))
    return ToolOutput(text="done")


def rule(pattern: str, action: Any) -> PermissionRule:
    return PermissionRule(permission="edit", pattern=pattern, action=action)


@pytest.fixture
def scope() -> Iterator[Scope]:
    scope = Registry().open()
    attachment = scope.attach(Owner("acme"))
    attachment.add_tool("tool", Tool(description="", execute=execute))
    agents = {
        "free": (rule("*", "allow"),),
        "careful": (rule("*", "allow"), rule("b.py", "ask")),
        "bound": (rule("*", "allow"), rule("b.py", "deny")),
        "new": (),
    }
    for name, rules in agents.items():
        attachment.add(AGENTS, name, Agent(name=name, permission=rules))
    yield scope
    scope.closed = True


async def settled(scope: Scope, agent: str, **settings: Any) -> Any:
    return await materialize(scope.read, **settings).settle(ToolCall(id="1", name="tool", agent=agent, session="ses_1"))


async def test_what_a_rule_allows_for_every_resource_is_done(scope: Scope) -> None:
    assert isinstance(await settled(scope, "free"), Completed)


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("bound", "a rule of the agent denies it"),
        ("careful", "nobody is there to ask"),
        ("new", "nobody is there to ask"),
        ("missing", "no agent is called 'missing'"),
    ],
)
async def test_what_one_resource_is_not_allowed_is_refused_and_the_model_is_told(
    scope: Scope, agent: str, why: str
) -> None:
    refused = await settled(scope, agent)
    assert isinstance(refused, Refused)
    assert refused.reason == "blocked"
    assert f"'edit' is not permitted for 'a.py', 'b.py': {why}." in refused.message


async def test_a_host_permits_by_its_own_gate(scope: Scope) -> None:
    asked: list[PermissionRequest] = []

    async def gate(request: PermissionRequest) -> None:
        asked.append(request)

    assert isinstance(await settled(scope, "missing", gate=gate), Completed)
    assert asked == [
        PermissionRequest(action="edit", resources=("a.py", "b.py"), session="ses_1", agent="missing", save=("*.py",))
    ]


async def test_a_call_that_nobody_settles_may_do_nothing() -> None:
    with pytest.raises(PermissionBlockedError, match="nobody is there to permit it"):
        await ToolCall(id="1", name="tool").authorize("edit", "a.py")
