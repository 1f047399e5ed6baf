"""Decides whether an event from elsewhere is new, a repeat, or refused. Commits nothing itself."""

from __future__ import annotations

import json
from typing import cast

from opencode_core.errors import DivergenceError, EventReusedError, OwnerConflictError, SequenceGapError
from opencode_core.ids import is_placed
from opencode_core.model.codec import EventCodec
from opencode_core.model.event.base import Recorded
from opencode_core.model.json import JSON
from opencode_core.storage.envelope import from_row
from opencode_core.storage.tables import EVENT_IDS, EVENTS
from opencode_core.storage.writer import Writer


def replay(writer: Writer, sent: Recorded, codec: EventCodec, *, owner: str | None, strict: bool) -> Recorded | None:
    """Adds an event exactly where it stood, and returns it; None for a repeat, or one of another owner.

    Args:
        writer: The transaction.
        sent: The event, with its place.
        codec: Reads what is there already.
        owner: Who sends it; a log that nobody owns is theirs from then on.
        strict: Whether another owner is an error; else their events are skipped.

    Raises:
        OwnerConflictError: The log belongs to somebody else, and ``strict``.
        SequenceGapError: Something is missing before it.
        DivergenceError: Something else stands there.
        EventReusedError: Its id stands elsewhere.
        OpencodeError: A projector refuses it.
    """
    if not _is_admissible(writer, sent.aggregate, owner, strict):
        return None
    head = writer.head(sent.aggregate)
    if sent.sequence > head + 1 or sent.sequence < 0:
        raise SequenceGapError(
            f"The event {sent.sequence} of '{sent.aggregate}' does not follow on {head}.",
            "Replay what is missing before it.",
        )
    if sent.sequence <= head:
        _check_repeat(writer, sent, codec)
        added = None
    else:
        _check_id(writer, sent)
        added = writer.append(sent.event, id=sent.id, location=sent.location)
    if owner is not None and writer.owner(sent.aggregate) is None:
        writer.claim(sent.aggregate, owner)
    return added


def _is_admissible(writer: Writer, aggregate: str, owner: str | None, strict: bool) -> bool:
    known = writer.owner(aggregate)
    if owner is None or known is None or known == owner:
        return True
    if strict:
        raise OwnerConflictError(
            f"The log '{aggregate}' belongs to '{known}', not to '{owner}'.", "Claim it first, if that is right."
        )
    return False


def _check_repeat(writer: Writer, sent: Recorded, codec: EventCodec) -> None:
    there = from_row(sent.aggregate, sent.sequence, writer.rows.get(EVENTS, (sent.aggregate, sent.sequence)), codec)
    if there.id != sent.id or _told(there, codec) != _told(sent, codec):
        raise DivergenceError(
            f"Another event than '{sent.id}' stands at {sent.sequence} in the log '{sent.aggregate}'.",
            "The two logs went different ways; keep one of them.",
        )


def _told(recorded: Recorded, codec: EventCodec) -> JSON:
    """Returns what an event says as it would be read again: what was sent need not have been text yet."""
    return cast("JSON", json.loads(json.dumps([recorded.event.kind.type, codec.encode(recorded.event)])))


def _check_id(writer: Writer, sent: Recorded) -> None:
    proven = is_placed(sent.id, sent.aggregate, sent.sequence)
    if proven or (proven is None and writer.rows.get(EVENT_IDS, (sent.id,)) is None):
        return
    raise EventReusedError(f"The event id '{sent.id}' belongs to another place.", "An event has one place.")
