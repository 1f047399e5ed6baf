"""What a conversation is made of: eight kinds of message. Stores nothing, and holds no parts."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

import attrs

from opencode_core.model.fault import Fault
from opencode_core.model.json import JSON
from opencode_core.model.part import NO_TOKENS, Moment, Part, Tokens
from opencode_core.model.session import FileDiff, ModelChoice


@attrs.frozen(kw_only=True)
class MessageTime:
    """When a message was made and completed, in milliseconds since 1970."""

    created: int
    completed: int | None = None


@attrs.frozen(kw_only=True)
class TextFormat:
    """The answer is text."""


@attrs.frozen(kw_only=True)
class JsonSchemaFormat:
    """The answer is a value that fits a schema."""

    schema: Mapping[str, JSON]
    retries: int = 2


OutputFormat: TypeAlias = TextFormat | JsonSchemaFormat


@attrs.frozen(kw_only=True)
class UserSummary:
    """What a prompt led to, in a few words."""

    title: str | None = None
    body: str | None = None
    diffs: tuple[FileDiff, ...] = ()


@attrs.frozen(kw_only=True)
class UserMessage:
    """What a person said, and what they chose for the answer."""

    id: str
    session: str
    time: Moment
    agent: str | None = None
    model: ModelChoice | None = None
    variant: str | None = None
    system: str | None = None
    tools: Mapping[str, bool] | None = None
    format: OutputFormat | None = None
    summary: UserSummary | None = None
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class WorkingPath:
    """Where an answer was made: the working directory, and the project's root."""

    cwd: str
    root: str


@attrs.frozen(kw_only=True)
class AssistantMessage:
    """What the model answered in one step.

    Attributes:
        parent: The user message that it answers; empty when there is none.
        summary: Whether it is the summary of a compaction.
        structured: The value that was asked for with a schema.
        finish: Why the provider stopped.
    """

    id: str
    session: str
    time: MessageTime
    error: Fault | None = None
    parent: str = ""
    model: str = ""
    provider: str = ""
    variant: str | None = None
    mode: str | None = None
    agent: str = ""
    path: WorkingPath
    summary: bool | None = None
    cost: Decimal = Decimal(0)
    tokens: Tokens = NO_TOKENS
    structured: JSON = None
    finish: str | None = None


@attrs.frozen(kw_only=True)
class SystemMessage:
    """A Mid-Conversation System Message: exactly what the model is told, and because of which sources."""

    id: str
    session: str
    time: Moment
    text: str
    sources: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SyntheticMessage:
    """Something that is said in the person's place."""

    id: str
    session: str
    time: Moment
    text: str


@attrs.frozen(kw_only=True)
class ShellMessage:
    """A command that the person ran, with what it printed; not completed while it runs."""

    id: str
    session: str
    time: MessageTime
    call: str
    command: str
    output: str = ""
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class AgentSwitchMessage:
    """From here on another agent is asked."""

    id: str
    session: str
    time: Moment
    agent: str
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ModelSwitchMessage:
    """From here on another model is asked."""

    id: str
    session: str
    time: Moment
    model: ModelChoice
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class CompactionMessage:
    """Everything before this is told by a summary.

    Attributes:
        text: The summary.
        recent: The tail of the conversation that is kept in its own words.
        auto: Whether nobody asked for it.
        overflow: Whether the provider had refused the request as too large.
        tail_start: The first message of the tail.
    """

    id: str
    session: str
    time: Moment
    text: str
    recent: str = ""
    auto: bool = True
    overflow: bool | None = None
    tail_start: str | None = None
    metadata: Mapping[str, JSON] | None = None


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | SystemMessage
    | SyntheticMessage
    | ShellMessage
    | AgentSwitchMessage
    | ModelSwitchMessage
    | CompactionMessage
)


@attrs.frozen(kw_only=True)
class Entry:
    """A message at its place in the conversation, with its parts in their order.

    Attributes:
        sequence: Its place; None in a first-generation session that was never continued here.
    """

    sequence: int | None
    message: Message
    parts: tuple[Part, ...] = ()
