"""What happens to a session as a whole, to its inbox and to what its model is told. Durable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import attrs

from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.base import EventKind, SessionEvent
from opencode_core.model.json import JSON
from opencode_core.model.permission import PermissionRule
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import Delivery, FileDiff, ModelChoice, Revert


@attrs.frozen(kw_only=True)
class SessionCreated(SessionEvent):
    """A session was created."""

    kind: ClassVar = EventKind("session.created", public=False)

    project: str
    directory: str
    title: str = ""
    slug: str = ""
    version: str = ""
    parent: str | None = None
    agent: str | None = None
    model: ModelChoice | None = None
    workspace: str | None = None
    permission: tuple[PermissionRule, ...] | None = None


@attrs.frozen(kw_only=True)
class SessionImported(SessionEvent):
    """A session came from elsewhere, as this document; a first-generation one keeps its bytes."""

    kind: ClassVar = EventKind("session.imported", public=False)

    document: Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class SessionTitled(SessionEvent):
    """A session got another title."""

    kind: ClassVar = EventKind("session.titled")

    title: str


@attrs.frozen(kw_only=True)
class SessionTouched(SessionEvent):
    """Somebody was active in a session."""

    kind: ClassVar = EventKind("session.touched", public=False)


@attrs.frozen(kw_only=True)
class SessionArchived(SessionEvent):
    """A session was put away."""

    kind: ClassVar = EventKind("session.archived")


@attrs.frozen(kw_only=True)
class SessionUnarchived(SessionEvent):
    """An archived session came back."""

    kind: ClassVar = EventKind("session.unarchived")


@attrs.frozen(kw_only=True)
class SessionShared(SessionEvent):
    """A session was made public."""

    kind: ClassVar = EventKind("session.shared")

    url: str


@attrs.frozen(kw_only=True)
class SessionUnshared(SessionEvent):
    """A public session became private."""

    kind: ClassVar = EventKind("session.unshared")


@attrs.frozen(kw_only=True)
class SessionDiffed(SessionEvent):
    """What a session changed in the files was worked out again."""

    kind: ClassVar = EventKind("session.diffed")

    diffs: tuple[FileDiff, ...]


@attrs.frozen(kw_only=True)
class SessionPermitted(SessionEvent):
    """A session got other permission rules of its own."""

    kind: ClassVar = EventKind("session.permitted")

    rules: tuple[PermissionRule, ...]


@attrs.frozen(kw_only=True)
class SessionMoved(SessionEvent):
    """A session continues somewhere else; its Context Epoch ended."""

    kind: ClassVar = EventKind("session.moved")

    directory: str
    project: str
    workspace: str | None = None


@attrs.frozen(kw_only=True)
class AgentSwitched(SessionEvent):
    """Another agent was chosen."""

    kind: ClassVar = EventKind("agent.switched")

    message: str
    agent: str


@attrs.frozen(kw_only=True)
class ModelSwitched(SessionEvent):
    """Another model was chosen."""

    kind: ClassVar = EventKind("model.switched")

    message: str
    model: ModelChoice


@attrs.frozen(kw_only=True)
class PromptAdmitted(SessionEvent):
    """A prompt was accepted into the inbox; ``parts`` are the ids that its parts will have."""

    kind: ClassVar = EventKind("prompt.admitted")

    message: str
    prompt: Prompt
    delivery: Delivery = "steer"
    parts: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class PromptPromoted(SessionEvent):
    """An admitted prompt became a user message.

    Attributes:
        admitted: The sequence of its admission, which holds what was asked.
        admitted_at: When it was admitted, which is the time of the message.
    """

    kind: ClassVar = EventKind("prompt.promoted")

    message: str
    admitted: int
    admitted_at: int
    delivery: Delivery = "steer"


@attrs.frozen(kw_only=True)
class TextSection:
    """Which stretch of a text a source rendered, in characters."""

    key: str
    start: int
    end: int


@attrs.frozen(kw_only=True)
class EpochStarted(SessionEvent):
    """A Context Epoch began with this baseline.

    Attributes:
        baseline: The exact text.
        sections: Which source rendered which stretch of it.
        snapshot: What each source was.
        since: System messages up to this sequence are folded into the baseline.
        reason: Why it began; ``retracted`` when a system message that the model had been told was taken back.
    """

    kind: ClassVar = EventKind("epoch.started", 2)

    baseline: str
    sections: tuple[TextSection, ...] = ()
    snapshot: Mapping[str, SnapshotEntry]
    since: int
    reason: Literal["first", "compaction", "incompatible", "moved", "retracted"] = "first"


@attrs.frozen(kw_only=True)
class ContextAdmitted(SessionEvent):
    """The model is told of changed context in a Mid-Conversation System Message, and the snapshot advanced.

    Attributes:
        text: Exactly what the model is told.
        sections: Which source rendered which stretch of it.
        changed: What changed or is new, by source.
        removed: The sources that are gone.
    """

    kind: ClassVar = EventKind("context.admitted", 2)

    message: str
    text: str
    sections: tuple[TextSection, ...] = ()
    changed: Mapping[str, SnapshotEntry] = attrs.field(factory=dict)
    removed: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class CompactionStarted(SessionEvent):
    """A summary is being made; if it fails, nothing comes of it."""

    kind: ClassVar = EventKind("compaction.started")

    message: str
    auto: bool = True
    overflow: bool | None = None


@attrs.frozen(kw_only=True)
class CompactionEnded(SessionEvent):
    """A summary took the place of what was said before."""

    kind: ClassVar = EventKind("compaction.ended")

    message: str
    text: str
    recent: str = ""
    auto: bool = True
    overflow: bool | None = None
    tail_start: str | None = None


@attrs.frozen(kw_only=True)
class CompactionFailed(SessionEvent):
    """A summary could not be made."""

    kind: ClassVar = EventKind("compaction.failed")

    message: str
    reason: str = ""


@attrs.frozen(kw_only=True)
class RevertStaged(SessionEvent):
    """Everything behind a boundary is to go."""

    kind: ClassVar = EventKind("revert.staged")

    revert: Revert


@attrs.frozen(kw_only=True)
class RevertCleared(SessionEvent):
    """A staged revert was taken back."""

    kind: ClassVar = EventKind("revert.cleared")


@attrs.frozen(kw_only=True)
class RevertCommitted(SessionEvent):
    """Everything behind the boundary is gone; the log keeps it."""

    kind: ClassVar = EventKind("revert.committed")

    message: str
    part: str | None = None
