"""Keeps the Context Epoch of a session: reads it, decides what it needs, and records that. Observes nothing.

What is decided is recorded inside the caller's transaction, so the snapshot and the Mid-Conversation System Message
advance together, with whatever else the caller records there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from opencode_core.context.reconcile import SEPARATOR, initialize, reconcile, replace
from opencode_core.errors import OpencodeError, SnapshotDecodeError, SourceFaultError
from opencode_core.model.codec import decode
from opencode_core.model.context import Baseline, Observation, ReplacementReady, SnapshotEntry, Texts, Updated
from opencode_core.model.event.session import ContextAdmitted, EpochStarted, SessionMoved, TextSection
from opencode_core.model.keys import check_source_key
from opencode_core.model.rows import CURSORS, EPOCHS, SNAPSHOTS, SYSTEM_ORDER, Rows
from opencode_core.storage.tables import EVENTS
from opencode_core.storage.writer import Writer

Reason: TypeAlias = Literal["first", "compaction", "incompatible", "moved", "retracted"]


@attrs.frozen(kw_only=True)
class Epoch:
    """The Context Epoch of a session as it stands.

    Attributes:
        baseline: The exact text that every request of the epoch begins with.
        sections: Which source rendered which stretch of it.
        snapshot: What the model was last told of each source.
        since: System messages up to this sequence are folded into the baseline.
        reason: Why it began.
        sequence: When it began.
        revision: The sequence of the last event that changed what the model was told.
    """

    baseline: str
    sections: tuple[TextSection, ...]
    snapshot: Mapping[str, SnapshotEntry]
    since: int
    reason: Reason
    sequence: int
    revision: int


@attrs.frozen(kw_only=True)
class Standing:
    """Where a session stands: its epoch, if one has begun, and its newest compaction, if there is one."""

    epoch: Epoch | None
    compaction: int | None = None

    @property
    def is_due(self) -> bool:
        """Whether a completed compaction asks for a fresh baseline."""
        return self.epoch is not None and self.compaction is not None and self.compaction > self.epoch.since


@attrs.frozen(kw_only=True)
class Begin:
    """A new epoch begins with this baseline."""

    baseline: Baseline
    reason: Reason
    because: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Admit:
    """The model is told what changed."""

    updated: Updated


@attrs.frozen(kw_only=True)
class Stay:
    """The model is told nothing new.

    Attributes:
        blocked: The sources that keep a fresh baseline from being made; empty when none is needed.
    """

    blocked: tuple[str, ...] = ()


Step: TypeAlias = Begin | Admit | Stay
OnSourceFault: TypeAlias = Callable[[SourceFaultError, str], None]
"""Is told what failed, and who contributes the source; empty when that is not known."""


def _ignore(_fault: SourceFaultError, _owner: str) -> None:
    return None


def read_standing(rows: Rows, session: str) -> Standing:
    """Reads where a session stands.

    Raises:
        SnapshotDecodeError: What is stored of it does not fit.
    """
    return Standing(epoch=read_epoch(rows, session), compaction=read_compaction(rows, session))


def read_compaction(rows: Rows, session: str) -> int | None:
    """Returns the sequence of the newest completed compaction; None when there was none."""
    cursor = rows.get(CURSORS, (session,))
    return cast("int | None", cursor.get("compaction")) if isinstance(cursor, Mapping) else None


def read_epoch(rows: Rows, session: str) -> Epoch | None:
    """Reads the epoch of a session; None when none has begun.

    Raises:
        SnapshotDecodeError: What is stored of it does not fit.
    """
    row = rows.get(EPOCHS, (session,))
    if row is None:
        return None
    snapshot = {str(key[1]): _entry(session, str(key[1]), entry) for key, entry in rows.scan(SNAPSHOTS, (session,))}
    try:
        values = decode(row, _Row)
    except Exception as error:
        raise SnapshotDecodeError(session, "", "its row does not fit") from error
    return Epoch(
        baseline=values.baseline,
        sections=values.sections,
        snapshot=snapshot,
        since=values.since,
        reason=values.reason,
        sequence=values.sequence,
        revision=max(values.sequence, _last_told(rows, session)),
    )


def read_revision(rows: Rows, session: str) -> int:
    """Returns the sequence of the last event that changed what the model was told; -1 when there is no epoch."""
    row = rows.get(EPOCHS, (session,))
    if not isinstance(row, Mapping):
        return -1
    return max(cast("int", row.get("sequence", -1)), _last_told(rows, session))


def decide(standing: Standing, observation: Observation, *, on_fault: OnSourceFault = _ignore) -> Step:
    """Returns what the epoch needs after an observation.

    A source that cannot be rendered or encoded counts as unavailable, and everybody else goes on.

    Raises:
        InitializationBlockedError: There is no epoch yet, and required sources are unavailable.
    """
    while True:
        try:
            return _decide(standing, observation)
        except SourceFaultError as fault:
            if fault.key not in observation.values or fault.key in observation.unavailable:
                raise  # it would never end
            on_fault(fault, observation.owners.get(fault.key, ""))
            observation = observation.without(fault.key, fault.problem)


def record(writer: Writer, session: str, step: Begin | Admit, *, at: int, message: str) -> None:
    """Appends what was decided; the snapshot advances with it.

    Args:
        writer: The transaction.
        session: The session.
        step: What was decided.
        at: The time.
        message: The id that a system message gets.
    """
    match step:
        case Begin(baseline=baseline, reason=reason):
            # Whatever was told before now is in the baseline, in its newest form.
            writer.append(
                EpochStarted(
                    session=session,
                    at=at,
                    baseline=baseline.text,
                    sections=sections_of(baseline.parts),
                    snapshot=baseline.snapshot,
                    since=writer.head(session),
                    reason=_why_none(writer, session) if reason == "first" else reason,
                )
            )
        case Admit(updated=updated):
            writer.append(
                ContextAdmitted(
                    session=session,
                    at=at,
                    message=message,
                    text=updated.text,
                    sections=sections_of(updated.parts),
                    changed=updated.changed,
                    removed=updated.removed,
                )
            )


def sections_of(parts: Texts) -> tuple[TextSection, ...]:
    """Returns which stretch of the joined text each source rendered."""
    sections: list[TextSection] = []
    start = 0
    for key, text in parts:
        sections.append(TextSection(key=key, start=start, end=start + len(text)))
        start += len(text) + len(SEPARATOR)
    return tuple(sections)


@attrs.frozen(kw_only=True)
class _Row:
    baseline: str
    sections: tuple[TextSection, ...]
    since: int
    reason: Reason
    sequence: int


def _entry(session: str, key: str, document: object) -> SnapshotEntry:
    try:
        check_source_key(key)
        entry = decode(cast("Any", document), SnapshotEntry)
    except OpencodeError as error:
        raise SnapshotDecodeError(session, key, "its key has no namespace") from error
    except Exception as error:
        raise SnapshotDecodeError(session, key, "its row does not fit") from error
    if entry.removed == "":
        raise SnapshotDecodeError(session, key, "its removal text is empty")
    return entry


def _last_told(rows: Rows, session: str) -> int:
    told = next(iter(rows.scan(SYSTEM_ORDER, (session,), limit=1, reverse=True)), None)
    return -1 if told is None else cast("int", told[0][1])


def _decide(standing: Standing, observation: Observation) -> Step:
    epoch = standing.epoch
    if epoch is None:
        return Begin(baseline=initialize(observation), reason="first")
    blocked: tuple[str, ...] = ()
    if standing.is_due:
        replaced = replace(observation, epoch.snapshot)
        if isinstance(replaced, ReplacementReady):
            return Begin(baseline=replaced.baseline, reason="compaction")
        blocked = replaced.keys  # the old baseline stays in effect, and so do changes to it
    reconciled = reconcile(observation, epoch.snapshot)
    match reconciled:
        case Updated():
            return Admit(updated=reconciled)
        case ReplacementReady(baseline=baseline, because=because):
            return Begin(baseline=baseline, reason="incompatible", because=because)
    return Stay(blocked=blocked or getattr(reconciled, "keys", ()))


def _why_none(writer: Writer, session: str) -> Reason:
    """Returns why a session has no epoch: it never had one, it moved, or what the model was told was taken back."""
    for _, row in writer.rows.scan(EVENTS, (session,), reverse=True):
        match str(cast("Mapping[str, Any]", row).get("type")).partition("/")[0]:
            case SessionMoved.kind.type:
                return "moved"
            case EpochStarted.kind.type:
                return "retracted"
    return "first"
