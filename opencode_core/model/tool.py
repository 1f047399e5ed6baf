"""What a tool, a call to it and its output are. Runs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import attrs

from opencode_core.errors import PermissionBlockedError
from opencode_core.model.json import JSON, copied, frozen_copy
from opencode_core.model.permission import PermissionRequest

Effect: TypeAlias = Literal["reads", "writes", "network", "idempotent"]


Gate: TypeAlias = Callable[[PermissionRequest], Awaitable[None]]
"""Returns when something may be done; raises ``PermissionBlockedError`` when it may not."""


async def _closed(request: PermissionRequest) -> None:
    raise PermissionBlockedError(request.action, request.resources, "nobody is there to permit it")


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call that the model made, with who it was made for.

    Attributes:
        id: The call's id.
        name: The tool's name.
        arguments: What it is called with.
        session: In which session.
        agent: For which agent: that of the Provider Turn that issued it.
        message: In which assistant message.
        gate: Who permits things for it; whoever settles the call sets it.
    """

    id: str
    name: str
    arguments: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)
    session: str = ""
    agent: str = ""
    message: str = ""
    gate: Gate = attrs.field(default=_closed, eq=False, repr=False)

    async def authorize(self, action: str, *resources: str, save: tuple[str, ...] = ()) -> None:
        """Returns when this call may do something; asks the person if it has to.

        Args:
            action: What is to be done, as permission rules name it.
            resources: To what.
            save: The patterns that an answer for always would remember.

        Raises:
            PermissionBlockedError: It may not. Let it through, unless the model must not know why.
        """
        await self.gate(
            PermissionRequest(action=action, resources=resources, session=self.session, agent=self.agent, save=save)
        )


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call that worked produced: text for the model, and a structured value for everybody else.

    Attributes:
        text: What the model is told.
        structured: The value for everybody else.
        title: What people see of it in one line.
        metadata: What else people may want to see.
        read: The files, canonical paths, that it read for the model; instructions beside them come into effect.
    """

    text: str = ""
    structured: JSON = attrs.field(default=None, converter=copied)
    title: str = ""
    metadata: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)
    read: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """Something the model may do.

    Attributes:
        description: What the model is told.
        parameters: The JSON Schema of the arguments, copied when the tool is made.
        execute: Does it. Raises ``ToolFailure`` to tell the model that it did not work.
        permission: The action that permission rules name; the tool's own name when empty.
        effects: What a call may touch.
    """

    description: str
    execute: Callable[[ToolCall], Awaitable[ToolOutput]]
    parameters: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=lambda: {"type": "object"})
    permission: str = ""
    effects: frozenset[Effect] = frozenset()
