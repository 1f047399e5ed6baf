"""What a tool, a call to it and its output are. Runs nothing."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import attrs

from opencode_core.model.json import JSON

Effect: TypeAlias = Literal["reads", "writes", "network", "idempotent"]


def _frozen_copy(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return MappingProxyType(copy.deepcopy(dict(value)))


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call that the model made, with who it was made for."""

    id: str
    name: str
    arguments: Mapping[str, JSON] = attrs.field(converter=_frozen_copy, factory=dict)
    session: str = ""
    agent: str = ""
    message: str = ""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call that worked produced: text for the model, and a structured value for everybody else."""

    text: str = ""
    structured: JSON = None
    title: str = ""
    metadata: Mapping[str, JSON] = attrs.field(converter=_frozen_copy, factory=dict)


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
    parameters: Mapping[str, JSON] = attrs.field(converter=_frozen_copy, factory=lambda: {"type": "object"})
    permission: str = ""
    effects: frozenset[Effect] = frozenset()
