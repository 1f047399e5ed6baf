"""The twelve parts that messages are made of, and the states of a tool call. Stores nothing.

Every part has an id of its own that never changes, and names its message and its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal, TypeAlias

import attrs

from opencode_core.model.fault import Fault
from opencode_core.model.json import JSON
from opencode_core.model.session import ModelChoice


@attrs.frozen(kw_only=True)
class Span:
    """From when to when, in milliseconds since 1970; without an end while it lasts."""

    start: int
    end: int | None = None


@attrs.frozen(kw_only=True)
class Moment:
    """When something was made, in milliseconds since 1970."""

    created: int


@attrs.frozen(kw_only=True)
class CacheTokens:
    """What was read from and written to the provider's cache."""

    read: int = 0
    write: int = 0


@attrs.frozen(kw_only=True)
class Tokens:
    """What a step used."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()


NO_TOKENS: Final = Tokens()


@attrs.frozen(kw_only=True)
class Excerpt:
    """A piece of the prompt's text: what it says, and where it stands."""

    value: str
    start: int
    end: int


@attrs.frozen(kw_only=True)
class Position:
    """A place in a file, counted from 0."""

    line: int
    character: int


@attrs.frozen(kw_only=True)
class Range:
    """From one place in a file to another."""

    start: Position
    end: Position


@attrs.frozen(kw_only=True)
class FileSource:
    """The attachment is a file."""

    path: str
    text: Excerpt


@attrs.frozen(kw_only=True)
class SymbolSource:
    """The attachment is a symbol that a language server found."""

    path: str
    range: Range
    name: str
    kind: int
    text: Excerpt


@attrs.frozen(kw_only=True)
class ResourceSource:
    """The attachment is a resource of an MCP server."""

    client: str
    uri: str
    text: Excerpt


Source: TypeAlias = FileSource | SymbolSource | ResourceSource


@attrs.frozen(kw_only=True)
class TextPart:
    """Text; ``synthetic`` was not typed by a person, ``ignored`` is not sent to the model."""

    id: str
    session: str
    message: str
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ReasoningPart:
    """What the model thought before it answered."""

    id: str
    session: str
    message: str
    text: str
    time: Span
    metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class FilePart:
    """A file or an image."""

    id: str
    session: str
    message: str
    mime: str
    url: str
    filename: str | None = None
    source: Source | None = None


@attrs.frozen(kw_only=True)
class PendingTool:
    """The input is arriving: parsed as far as it is known, and raw."""

    input: Mapping[str, JSON] = attrs.field(factory=dict)
    raw: str = ""


@attrs.frozen(kw_only=True)
class RunningTool:
    """The call is under way."""

    input: Mapping[str, JSON]
    title: str | None = None
    metadata: Mapping[str, JSON] | None = None
    time: Span


@attrs.frozen(kw_only=True)
class CompletedTime:
    """When a call ran, and when its output was cleared to save room."""

    start: int
    end: int
    compacted: int | None = None


@attrs.frozen(kw_only=True)
class CompletedTool:
    """The call worked."""

    input: Mapping[str, JSON]
    output: str
    title: str = ""
    metadata: Mapping[str, JSON] = attrs.field(factory=dict)
    structured: JSON = None
    time: CompletedTime
    attachments: tuple[FilePart, ...] | None = None


@attrs.frozen(kw_only=True)
class FailedTool:
    """The call did not work; ``output`` is what it had produced until then."""

    input: Mapping[str, JSON]
    error: str
    interrupted: bool | None = None
    output: str | None = None
    metadata: Mapping[str, JSON] | None = None
    time: Span


ToolState: TypeAlias = PendingTool | RunningTool | CompletedTool | FailedTool


@attrs.frozen(kw_only=True)
class ToolPart:
    """One call of a tool.

    Attributes:
        call: The provider's id of the call.
        metadata: What the provider sent with the call, to be sent back.
        result_metadata: What the provider sent with the result of a tool that it ran itself.
        executed: Whether the provider ran it.
    """

    id: str
    session: str
    message: str
    call: str
    tool: str
    state: ToolState
    metadata: Mapping[str, JSON] | None = None
    result_metadata: Mapping[str, JSON] | None = None
    executed: bool | None = None


@attrs.frozen(kw_only=True)
class SnapshotPart:
    """The state of the files, as a tree."""

    id: str
    session: str
    message: str
    snapshot: str


@attrs.frozen(kw_only=True)
class PatchPart:
    """Which files changed since a snapshot."""

    id: str
    session: str
    message: str
    hash: str
    files: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class AgentPart:
    """An agent that the prompt mentions."""

    id: str
    session: str
    message: str
    name: str
    source: Excerpt | None = None


@attrs.frozen(kw_only=True)
class CompactionPart:
    """A request to compact; ``tail_start`` is the first message that is kept as it is."""

    id: str
    session: str
    message: str
    auto: bool
    overflow: bool | None = None
    tail_start: str | None = None


@attrs.frozen(kw_only=True)
class SubtaskPart:
    """Work that is to be delegated."""

    id: str
    session: str
    message: str
    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


@attrs.frozen(kw_only=True)
class RetryPart:
    """One failed attempt that was tried again."""

    id: str
    session: str
    message: str
    attempt: int
    error: Fault
    time: Moment


@attrs.frozen(kw_only=True)
class StepStartPart:
    """A step began."""

    id: str
    session: str
    message: str
    snapshot: str | None = None


@attrs.frozen(kw_only=True)
class StepFinishPart:
    """A step ended."""

    id: str
    session: str
    message: str
    reason: str
    snapshot: str | None = None
    cost: Decimal = Decimal(0)
    tokens: Tokens = NO_TOKENS


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolPart
    | FilePart
    | SnapshotPart
    | PatchPart
    | AgentPart
    | CompactionPart
    | SubtaskPart
    | RetryPart
    | StepStartPart
    | StepFinishPart
)

PartType: TypeAlias = Literal[
    "text", "reasoning", "tool", "file", "snapshot", "patch", "agent", "compaction", "subtask", "retry",
    "step-start", "step-finish",
]  # fmt: skip
