"""Reads where a session stands: its Context Epoch and its newest compaction. Writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

import attrs

from opencode_core.errors import OpencodeError, SnapshotDecodeError
from opencode_core.model.codec import decode
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.session import TextSection
from opencode_core.model.json import JSON
from opencode_core.model.keys import check_source_key
from opencode_core.model.rows import CURSORS, EPOCHS, SNAPSHOTS, SYSTEM_ORDER, Rows

MOST_KNOWN = 256
"""How many sessions are remembered; the one that was read longest ago is forgotten first."""

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
    return None if row is None else _epoch(rows, session, row, _last_told(rows, session))


@attrs.define(eq=False, repr=False)
class Standings:
    """Reads where sessions stand, again and again: a snapshot that cannot have changed is not read a second time."""

    _known: dict[str, tuple[JSON, int, Epoch]] = attrs.field(init=False, factory=dict)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)  # stores read in threads

    def read(self, rows: Rows, session: str) -> Standing:
        """Reads where a session stands.

        Raises:
            SnapshotDecodeError: What is stored of it does not fit.
        """
        compaction = read_compaction(rows, session)
        row = rows.get(EPOCHS, (session,))
        with self._lock:
            known = self._known.pop(session, None)
        if row is None:
            return Standing(epoch=None, compaction=compaction)
        told = _last_told(rows, session)
        # A snapshot advances only with a new epoch or a new system message.
        is_same = known is not None and known[:2] == (row, told)
        epoch = known[2] if is_same and known is not None else _epoch(rows, session, row, told)
        with self._lock:
            self._known[session] = (row, told, epoch)
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return Standing(epoch=epoch, compaction=compaction)


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
    # Not the converter: there is one for every source at every boundary, and this is ten times as fast.
    try:
        check_source_key(key)
    except OpencodeError as error:
        raise SnapshotDecodeError(session, key, "its key has no namespace") from error
    if not isinstance(document, Mapping) or "value" not in document:
        raise SnapshotDecodeError(session, key, "its row does not fit")
    removed = document.get("removed")
    if removed is not None and not isinstance(removed, str):
        raise SnapshotDecodeError(session, key, "its removal text is no text")
    if removed == "":
        raise SnapshotDecodeError(session, key, "its removal text is empty")
    return SnapshotEntry(value=document["value"], removed=removed, owner=document.get("owner"))


def _epoch(rows: Rows, session: str, row: JSON, told: int) -> Epoch:
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
        revision=max(values.sequence, told),
    )


def _last_told(rows: Rows, session: str) -> int:
    told = next(iter(rows.scan(SYSTEM_ORDER, (session,), limit=1, reverse=True)), None)
    return -1 if told is None else cast("int", told[0][1])
