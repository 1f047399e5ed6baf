"""Reads where a session stands: its Context Epoch and its newest compaction. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from opencode_core.errors import OpencodeError, SnapshotDecodeError
from opencode_core.model.codec import decode
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.session import TextSection
from opencode_core.model.keys import check_source_key
from opencode_core.model.rows import CURSORS, EPOCHS, SNAPSHOTS, SYSTEM_ORDER, Rows

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
