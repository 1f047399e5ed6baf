"""What a tool, a call to it and its output are. Runs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

import attrs

from opencode_core.model.json import JSON, copied, frozen_copy

Effect: TypeAlias = Literal["reads", "writes", "network", "idempotent"]


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call that the model made, with who it was made for."""

    id: str
    name: str
    arguments: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)
    session: str = ""
    agent: str = ""
    message: str = ""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call that worked produced: text for the model, and a structured value for everybody else."""

    text: str = ""
    structured: JSON = attrs.field(default=None, converter=copied)
    title: str = ""
    metadata: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)


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
