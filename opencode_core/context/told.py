"""What a model was told, by source and in order, as plain values. Reads no log and renders nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal, TypeAlias

import attrs

from opencode_core.model.context import Snapshot, SnapshotEntry
from opencode_core.model.session import ModelChoice
from opencode_core.model.tokens import estimate_tokens

ChangeKind: TypeAlias = Literal["new", "changed", "removed", "unchanged"]
EndKind: TypeAlias = Literal["replaced", "moved", "retracted"]
Origin: TypeAlias = Literal["", "created", "imported"]
CutKind: TypeAlias = Literal["compaction", "revert", "message removed", "part removed", "output cleared"]


@attrs.frozen(kw_only=True)
class Extent:
    """How much a text is.

    Attributes:
        bytes: Its size in UTF-8.
        tokens: About how many tokens it is.
        digest: The SHA-256 of its bytes, in hexadecimal digits.
    """

    bytes: int
    tokens: int
    digest: str


def extent_of(text: str) -> Extent:
    """Measures a text."""
    encoded = text.encode("utf-8", "surrogatepass")
    return Extent(bytes=len(encoded), tokens=estimate_tokens(text), digest=hashlib.sha256(encoded).hexdigest())


@attrs.frozen(kw_only=True)
class SourceTold:
    """What one source had to do with a text that the model was told.

    Attributes:
        key: The source.
        change: What became of it since the model was last told of it.
        before: What it was then; None when the model had not been told of it.
        after: What it is from here on; None when it is gone.
        text: Its part of the text; empty when it has none.
    """

    key: str
    change: ChangeKind
    before: SnapshotEntry | None
    after: SnapshotEntry | None
    text: str


@attrs.frozen(kw_only=True)
class MessageTold:
    """One Mid-Conversation System Message.

    Attributes:
        id: Its id.
        sequence: Where it stands in the log.
        at: When it was admitted, in milliseconds since 1970.
        text: Exactly what the model was told.
        sources: Because of which sources, in the order of the text.
        after: The number of the Provider Turn before it; 0 when there was none.
        sent: The number of the first Provider Turn with it; None when there was none yet, or never will be.
        retracted: Where in the log it was taken back; None when it was not.
    """

    id: str
    sequence: int
    at: int
    text: str
    sources: tuple[SourceTold, ...]
    after: int
    sent: int | None = None
    retracted: int | None = None


@attrs.frozen(kw_only=True)
class Cut:
    """Something that changed what had been said already, and where in the log it stands."""

    kind: CutKind
    sequence: int


@attrs.frozen(kw_only=True)
class TurnTold:
    """One request to a provider.

    Attributes:
        number: Which Provider Turn of the session it belongs to, counted from 1.
        id: The id of that turn.
        attempt: Which attempt at it.
        sequence: Where it stands in the log.
        at: When it was prepared, in milliseconds since 1970.
        agent: Who was asked.
        model: Which model; None when that was not recorded.
        messages: How many messages the request has.
        digest: The digest of all that it says; empty when that was not recorded.
        prefix: The digest of what it has in common with the request before it; empty when there is none.
        expected: The digest of the request before it in the same epoch; empty when there is none.
        stable: Whether everything that was sent before was sent again; None for the first request of an epoch, or when
            it was not measured.
        cuts: What changed what had been said, since the request before it.
        outcome: How the turn ended; empty when the log does not say.
    """

    number: int
    id: str
    attempt: int
    sequence: int
    at: int
    agent: str
    model: ModelChoice | None
    messages: int
    digest: str
    prefix: str
    expected: str
    stable: bool | None
    cuts: tuple[Cut, ...] = ()
    outcome: str = ""


Told: TypeAlias = MessageTold | TurnTold


@attrs.frozen(kw_only=True)
class EndTold:
    """How an epoch ended.

    Attributes:
        kind: By what: a new baseline, a move, or a system message that was taken back.
        sequence: Where in the log.
        at: When, in milliseconds since 1970.
        reason: Why there is a new baseline, if it was replaced; how it was taken back, if it was retracted.
        directory: Where to, if the session moved.
        messages: Which system messages were taken back.
    """

    kind: EndKind
    sequence: int
    at: int
    reason: str = ""
    directory: str = ""
    messages: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class EpochTold:
    """One Context Epoch, from its baseline to its end.

    Attributes:
        number: Which one of the session, counted from 1.
        sequence: Where in the log it began.
        at: When, in milliseconds since 1970.
        reason: Why.
        since: System messages up to this sequence are folded into the baseline.
        baseline: The exact text that every request of it begins with.
        sources: Every source in the baseline, then those that are gone, each with what it was before.
        told: System messages and requests, in order.
        end: How it ended; None while it stands.
    """

    number: int
    sequence: int
    at: int
    reason: str
    since: int
    baseline: str
    sources: tuple[SourceTold, ...]
    told: tuple[Told, ...] = ()
    end: EndTold | None = None

    @property
    def messages(self) -> tuple[MessageTold, ...]:
        """The system messages, in order."""
        return messages_in(self.told)

    @property
    def turns(self) -> tuple[TurnTold, ...]:
        """The requests, in order."""
        return turns_in(self.told)


@attrs.frozen(kw_only=True)
class Explanation:
    """Everything that the log of a session says about what its model was told.

    Attributes:
        head: The last sequence of the log; -1 when the session has none.
        origin: How the session came to be here; empty when it has no log.
        epochs: The epochs, in order.
        outside: What was told while no epoch stood; nothing, unless something is wrong.
        snapshot: What the model was last told of each source; nothing when no epoch stands.
        last: The same, but for an epoch that ended what was last told in it.
    """

    head: int
    origin: Origin
    epochs: tuple[EpochTold, ...]
    outside: tuple[Told, ...]
    snapshot: Snapshot
    last: Snapshot


def messages_in(told: Iterable[Told]) -> tuple[MessageTold, ...]:
    """Returns the system messages among what was told."""
    return tuple(each for each in told if isinstance(each, MessageTold))


def turns_in(told: Iterable[Told]) -> tuple[TurnTold, ...]:
    """Returns the requests among what was told."""
    return tuple(each for each in told if isinstance(each, TurnTold))
