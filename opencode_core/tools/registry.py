"""Advertises tools for one turn, and runs the calls that come back only if the tool is still the one advertised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from opencode_core.errors import PermissionBlockedError, ToolFailure
from opencode_core.model.json import JSON
from opencode_core.model.tool import Gate, Tool, ToolCall, ToolOutput
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import TOOLS
from opencode_core.tools.permission import gate_of


@attrs.frozen(kw_only=True)
class ToolDefinition:
    """What the model is told of one tool."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class Completed:
    """A call that worked."""

    output: ToolOutput
    permission: str


@attrs.frozen(kw_only=True)
class Refused:
    """A call that the model is told did not work, and why."""

    message: str
    reason: str


Settlement: TypeAlias = Completed | Refused


@attrs.frozen(kw_only=True, eq=False)
class Materialization:
    """The tools of one turn: what was advertised, and how to settle calls to it.

    Attributes:
        definitions: What the model is told, by name in order.
    """

    definitions: tuple[ToolDefinition, ...]
    _advertised: Mapping[str, Contribution[Tool]]
    _current: Callable[[], View]
    _gate: Gate

    async def settle(self, call: ToolCall) -> Settlement:
        """Runs a call with the handler that was advertised.

        A tool that is not advertised is unknown; one that was replaced or removed since is stale. A call that has
        started finishes with the handler it started with, whatever happens to the registry.

        Raises:
            Exception: A defect of the tool, for the caller to isolate. What the model may be told is returned.
        """
        advertised = self._advertised.get(call.name)
        if advertised is None:
            return Refused(message=f"There is no tool called '{call.name}'.", reason="unknown")
        current = self._current().find(TOOLS, call.name)
        if current is None or current.identity != advertised.identity:
            return Refused(message=f"The tool '{call.name}' changed since it was offered; look again.", reason="stale")
        tool = advertised.value
        try:
            output = await tool.execute(attrs.evolve(call, gate=self._gate))
        except ToolFailure as failure:
            return Refused(message=str(failure), reason="failed")
        except PermissionBlockedError as blocked:
            return Refused(message=str(blocked), reason="blocked")
        return Completed(output=output, permission=tool.permission or call.name)


def materialize(read: Callable[[], View], *, gate: Gate | None = None) -> Materialization:
    """Takes the tools that a scope shows now.

    Args:
        read: Reads the scope, now and again when a call is settled.
        gate: Permits what calls do; None for the rules of the agent alone.
    """
    advertised = {each.key: each for each in read().all(TOOLS)}
    return Materialization(
        definitions=tuple(_definition(name, each.value) for name, each in advertised.items()),
        advertised=advertised,
        current=read,
        gate=gate_of(read) if gate is None else gate,
    )


def _definition(name: str, tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=name, description=tool.description, parameters=tool.parameters)
