"""What a new epoch and admitted context do to the epoch, the snapshot and the conversation."""

from __future__ import annotations

from typing import Any, cast

from opencode_core.model.codec import encode
from opencode_core.model.event import session as events
from opencode_core.model.message import SystemMessage
from opencode_core.model.part import Moment
from opencode_core.model.projection.stored import add_message, session_key
from opencode_core.model.rows import EPOCHS, SNAPSHOTS, SYSTEM_ORDER, VISITED, Draft, digest


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


def retract(draft: Draft, session: str, sequence: int) -> None:
    """Ends the epoch if what is taken out of the conversation is a system message that the baseline does not have.

    The snapshot says that the model was told. It will not have been, so the next baseline tells it anew.
    """
    epoch = draft.read(EPOCHS, (session,))
    is_newer = epoch is not None and sequence > cast("int", epoch["since"])
    if is_newer and draft.get(SYSTEM_ORDER, (session, sequence)) is not None:
        end_epoch(draft, session)


def end_epoch(draft: Draft, session: str) -> None:
    """Takes the baseline and the snapshot away."""
    if draft.get(EPOCHS, (session,)) is not None:
        draft.delete(EPOCHS, (session,))
    for key, _ in draft.scan(SNAPSHOTS, (session,)):
        draft.delete(SNAPSHOTS, key)


def visit(draft: Draft, session: str, folder: str) -> None:
    """The session has read a file in this folder: what stands beside it may concern the model."""
    key = (session, digest(folder))
    if draft.get(VISITED, key) is None:
        draft.put(VISITED, key, folder)


def forget_visits(draft: Draft, session: str) -> None:
    """The session is somewhere else now."""
    for key, _ in draft.scan(VISITED, (session,)):
        draft.delete(VISITED, key)


PROJECTORS: dict[type, Any] = {events.EpochStarted: epoch_started, events.ContextAdmitted: context_admitted}
