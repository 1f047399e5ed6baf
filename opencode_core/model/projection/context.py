"""What a new epoch and admitted context do to the epoch, the snapshot and the conversation."""

from __future__ import annotations

from typing import Any

from opencode_core.model.codec import encode
from opencode_core.model.event import session as events
from opencode_core.model.message import SystemMessage
from opencode_core.model.part import Moment
from opencode_core.model.projection.stored import add_message, session_key
from opencode_core.model.rows import EPOCHS, SNAPSHOTS, Draft


def epoch_started(draft: Draft, event: events.EpochStarted, sequence: int) -> None:
    """The baseline stands, and the snapshot is exactly what it was made of."""
    session_key(draft, event.session)
    draft.put(
        EPOCHS,
        (event.session,),
        {
            "baseline": event.baseline,
            "sections": encode(event.sections),
            "since": event.since,
            "reason": event.reason,
            "sequence": sequence,
        },
    )
    for key, _ in draft.scan(SNAPSHOTS, (event.session,)):
        if key[1] not in event.snapshot:
            draft.delete(SNAPSHOTS, key)
    for source, entry in event.snapshot.items():
        draft.put(SNAPSHOTS, (event.session, source), encode(entry))


def context_admitted(draft: Draft, event: events.ContextAdmitted, sequence: int) -> None:
    """The conversation has a system message, and the snapshot advanced with it."""
    message = SystemMessage(
        id=event.message,
        session=event.session,
        time=Moment(created=event.at),
        text=event.text,
        sources=tuple(sorted({*event.changed, *event.removed})),
    )
    add_message(draft, sequence, message)
    for source, entry in event.changed.items():
        draft.put(SNAPSHOTS, (event.session, source), encode(entry))
    for source in event.removed:
        draft.delete(SNAPSHOTS, (event.session, source))


def end_epoch(draft: Draft, session: str) -> None:
    """Takes the baseline and the snapshot away."""
    if draft.get(EPOCHS, (session,)) is not None:
        draft.delete(EPOCHS, (session,))
    for key, _ in draft.scan(SNAPSHOTS, (session,)):
        draft.delete(SNAPSHOTS, key)


PROJECTORS: dict[type, Any] = {events.EpochStarted: epoch_started, events.ContextAdmitted: context_admitted}
