"""What happens in a conversation: turns, steps, texts, tool calls and other messages. Durable."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Literal

import attrs

from opencode_core.model.event.base import EventKind, SessionEvent
from opencode_core.model.fault import Fault
from opencode_core.model.json import JSON
from opencode_core.model.part import NO_TOKENS, FilePart, Tokens
from opencode_core.model.session import FileDiff, ModelChoice


@attrs.frozen(kw_only=True)
class TurnPrepared(SessionEvent):
    """A Provider Turn is ready to be sent.

    Attributes:
        messages: How many messages the request has.
        digest: The digest of everything that the request says: the baseline and these messages.
        prefix: The digest of what it has in common with the request before it; the same as its digest if nothing of
            what was sent changed.
    """

    kind: ClassVar = EventKind("turn.prepared", 2, public=False)

    turn: str
    agent: str = ""
    model: ModelChoice | None = None
    attempt: int = 1
    messages: int = 0
    digest: str = ""
    prefix: str = ""


@attrs.frozen(kw_only=True)
class TurnDispatched(SessionEvent):
    """A Provider Turn is being sent; what the provider does from here on may have happened."""

    kind: ClassVar = EventKind("turn.dispatched", public=False)

    turn: str


@attrs.frozen(kw_only=True)
class TurnSettled(SessionEvent):
    """A Provider Turn is over."""

    kind: ClassVar = EventKind("turn.settled", public=False)

    turn: str
    outcome: Literal["completed", "failed", "interrupted", "abandoned"] = "completed"


@attrs.frozen(kw_only=True)
class StepStarted(SessionEvent):
    """The model began to answer, in this message."""

    kind: ClassVar = EventKind("step.started")

    message: str
    part: str
    parent: str = ""
    agent: str = ""
    model: ModelChoice
    cwd: str = ""
    root: str = ""
    snapshot: str | None = None
    summary: bool | None = None


@attrs.frozen(kw_only=True)
class StepEnded(SessionEvent):
    """The model's answer is complete."""

    kind: ClassVar = EventKind("step.ended")

    message: str
    part: str
    finish: str
    cost: Decimal = Decimal(0)
    tokens: Tokens = NO_TOKENS
    snapshot: str | None = None
    structured: JSON = None


@attrs.frozen(kw_only=True)
class StepFailed(SessionEvent):
    """The model's answer broke off."""

    kind: ClassVar = EventKind("step.failed")

    message: str
    error: Fault
    finish: str = "error"
    cost: Decimal = Decimal(0)
    tokens: Tokens = NO_TOKENS


@attrs.frozen(kw_only=True)
class PartEvent(SessionEvent):
    """A fact of one part of a message."""

    message: str
    part: str


@attrs.frozen(kw_only=True)
class FragmentGrew(PartEvent):
    """More of a text that is still streaming is safe; ``offset`` is how long the text was before, in characters."""

    offset: int
    text: str


@attrs.frozen(kw_only=True)
class TextStarted(PartEvent):
    """A text began."""

    kind: ClassVar = EventKind("text.started")

    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class TextGrew(FragmentGrew):
    """More of a text is safe."""

    kind: ClassVar = EventKind("text.grew")


@attrs.frozen(kw_only=True)
class TextEnded(PartEvent):
    """A text is complete."""

    kind: ClassVar = EventKind("text.ended")

    text: str
    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ReasoningStarted(PartEvent):
    """A thought began."""

    kind: ClassVar = EventKind("reasoning.started")

    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ReasoningGrew(FragmentGrew):
    """More of a thought is safe."""

    kind: ClassVar = EventKind("reasoning.grew")


@attrs.frozen(kw_only=True)
class ReasoningEnded(PartEvent):
    """A thought is complete."""

    kind: ClassVar = EventKind("reasoning.ended")

    text: str
    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ToolInputStarted(PartEvent):
    """The input of a tool call began to arrive."""

    kind: ClassVar = EventKind("tool.input.started")

    call: str
    tool: str


@attrs.frozen(kw_only=True)
class ToolInputGrew(FragmentGrew):
    """More of a tool call's input is safe."""

    kind: ClassVar = EventKind("tool.input.grew")


@attrs.frozen(kw_only=True)
class ToolInputEnded(PartEvent):
    """The input of a tool call is complete, and not yet parsed."""

    kind: ClassVar = EventKind("tool.input.ended")

    raw: str


@attrs.frozen(kw_only=True)
class ToolCalled(PartEvent):
    """A tool is being called; what it does from here on may have happened.

    Attributes:
        executed: Whether the provider runs it.
        provider_metadata: What the provider sent with the call.
    """

    kind: ClassVar = EventKind("tool.called")

    call: str
    tool: str
    input: Mapping[str, JSON]
    executed: bool | None = None
    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ToolProgressed(PartEvent):
    """A running tool said how far it is."""

    kind: ClassVar = EventKind("tool.progressed")

    title: str | None = None
    shown: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ToolSucceeded(PartEvent):
    """A tool call worked.

    Attributes:
        output: The bounded text for the model.
        shown: What the tool tells people beside it.
        structured: Its value for everybody else.
        visited: The folders, canonical, out of which it read files for the model.
        provider_metadata: What the provider sent with the result, when it ran the tool.
    """

    kind: ClassVar = EventKind("tool.succeeded", 2)

    output: str
    title: str = ""
    shown: Mapping[str, JSON] = attrs.field(factory=dict)
    structured: JSON = None
    attachments: tuple[FilePart, ...] | None = None
    visited: tuple[str, ...] = ()
    executed: bool | None = None
    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ToolFailed(PartEvent):
    """A tool call did not work, or did not come to an end."""

    kind: ClassVar = EventKind("tool.failed")

    error: str
    interrupted: bool | None = None
    output: str | None = None
    executed: bool | None = None
    provider_metadata: Mapping[str, JSON] | None = None


@attrs.frozen(kw_only=True)
class ToolOutputCleared(PartEvent):
    """The output of an old call is no longer sent to the model; the store keeps it."""

    kind: ClassVar = EventKind("tool.output.cleared")


@attrs.frozen(kw_only=True)
class SnapshotRecorded(PartEvent):
    """The state of the files was kept."""

    kind: ClassVar = EventKind("snapshot.recorded")

    snapshot: str


@attrs.frozen(kw_only=True)
class PatchRecorded(PartEvent):
    """Which files a step changed was kept."""

    kind: ClassVar = EventKind("patch.recorded")

    hash: str
    files: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class RetryRecorded(PartEvent):
    """An attempt failed and will be made again."""

    kind: ClassVar = EventKind("retry.recorded")

    attempt: int
    error: Fault


@attrs.frozen(kw_only=True)
class PartRemoved(PartEvent):
    """A part was taken out of its message."""

    kind: ClassVar = EventKind("part.removed")


@attrs.frozen(kw_only=True)
class MessageRemoved(SessionEvent):
    """A message was taken out of the conversation."""

    kind: ClassVar = EventKind("message.removed")

    message: str


@attrs.frozen(kw_only=True)
class MessageImported(SessionEvent):
    """A message came from elsewhere, with its parts, as these documents; first-generation ones keep their bytes."""

    kind: ClassVar = EventKind("message.imported")

    message: str
    document: Mapping[str, JSON]
    parts: tuple[Mapping[str, JSON], ...] = ()


@attrs.frozen(kw_only=True)
class MessageSummarized(SessionEvent):
    """What a prompt led to was put into a few words."""

    kind: ClassVar = EventKind("message.summarized")

    message: str
    title: str | None = None
    body: str | None = None
    diffs: tuple[FileDiff, ...] = ()


@attrs.frozen(kw_only=True)
class SyntheticAdded(SessionEvent):
    """Something was said in the person's place."""

    kind: ClassVar = EventKind("synthetic.added")

    message: str
    text: str


@attrs.frozen(kw_only=True)
class ShellStarted(SessionEvent):
    """The person ran a command."""

    kind: ClassVar = EventKind("shell.started")

    message: str
    call: str
    command: str


@attrs.frozen(kw_only=True)
class ShellEnded(SessionEvent):
    """A command of the person ended."""

    kind: ClassVar = EventKind("shell.ended")

    message: str
    output: str
