"""What is sent to a model provider and what comes back. Encodes nothing for any vendor."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import attrs

from opencode_core.model.json import JSON, frozen_copy

StreamKind: TypeAlias = Literal[
    "start", "start-step", "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta",
    "reasoning-end", "tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result",
    "tool-error", "finish-step", "error", "finish",
]  # fmt: skip


def _frozen_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(headers))


@attrs.frozen(kw_only=True)
class ProviderRequest:
    """One canonical request.

    Attributes:
        provider: The provider's id.
        model: The model's id at that provider.
        system: The exact baseline text. A hook that changes it is refused.
        messages: The Session History, oldest first.
        tools: The advertised tools, by name in order.
        parameters: Generation Controls and Model Request Options.
        headers: What is sent beside the body.
    """

    provider: str
    model: str
    system: str
    messages: tuple[Mapping[str, JSON], ...] = ()
    tools: tuple[Mapping[str, JSON], ...] = ()
    parameters: Mapping[str, JSON] = attrs.field(converter=frozen_copy, factory=dict)
    headers: Mapping[str, str] = attrs.field(converter=_frozen_headers, factory=dict)


@attrs.frozen(kw_only=True)
class ProviderTurn:
    """Which Provider Turn a request belongs to."""

    session: str
    agent: str
    number: int


@attrs.frozen(kw_only=True)
class StreamEvent:
    """One event of a provider's answer; ``id`` tells parallel fragments and calls apart."""

    kind: StreamKind
    id: str = ""
    text: str = ""
    payload: Mapping[str, JSON] = attrs.field(factory=dict)
