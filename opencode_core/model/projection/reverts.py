"""What staging, clearing and committing a revert does. The log itself is never cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from opencode_core.errors import MessageNotFoundError
from opencode_core.model.event import session as events
from opencode_core.model.json import JSON
from opencode_core.model.projection.context import retract
from opencode_core.model.projection.messages import newest_compaction
from opencode_core.model.projection.sessions import change
from opencode_core.model.projection.stored import (
    message_sequence,
    move_cursor,
    read_cursor,
    remove_message,
    remove_part,
)
from opencode_core.model.rows import INBOX, MESSAGE_ORDER, MESSAGE_PLACES, PART_ORDER, PENDING, Draft


def staged(draft: Draft, event: events.RevertStaged, _sequence: int) -> None:
    """The session says what is to go."""
    message_sequence(draft, event.session, event.revert.message)
    change(draft, event, revert=event.revert)


def cleared(draft: Draft, event: events.RevertCleared, _sequence: int) -> None:
    """The session no longer does."""
    change(draft, event, revert=None)


def committed(draft: Draft, event: events.RevertCommitted, _sequence: int) -> None:
    """What is behind the boundary is gone: parts, messages, and prompts that were admitted or promoted there."""
    boundary = message_sequence(draft, event.session, event.message)
    gone = _remove_messages(draft, event.session, boundary)
    if event.part is not None:
        _remove_parts(draft, event.session, event.message, event.part)
    _empty_inbox(draft, event.session, boundary)
    _set_back(draft, event.session, boundary, gone)
    change(draft, event, revert=None)


def _remove_messages(draft: Draft, session: str, boundary: int) -> set[str]:
    gone = set()
    for key, document in draft.scan(MESSAGE_ORDER, (session,), after=(session, boundary)):
        sequence = cast("int", key[1])
        message = cast("str", cast("Mapping[str, JSON]", document)["id"])
        retract(draft, session, sequence)
        remove_message(draft, session, message, sequence)
        gone.add(message)
    return gone


def _remove_parts(draft: Draft, session: str, message: str, last: str) -> None:
    ids = [cast("str", cast("Mapping[str, JSON]", row)["id"]) for _, row in draft.scan(PART_ORDER, (message,))]
    if last not in ids:
        raise MessageNotFoundError(
            f"There is no part '{last}' in the message '{message}'.", "Revert to a part that is there.", session=session
        )
    for part in ids[ids.index(last) + 1 :]:
        remove_part(draft, message, part)


def _empty_inbox(draft: Draft, session: str, boundary: int) -> None:
    for key, document in draft.scan(INBOX, (session,)):
        row = cast("Mapping[str, Any]", document)
        if row["admitted"] <= boundary and row.get("promoted", 0) <= boundary:
            continue
        draft.delete(INBOX, key)
        if key[1] == PENDING:
            draft.delete(MESSAGE_PLACES, (row["message"],))


def _set_back(draft: Draft, session: str, boundary: int, gone: set[str]) -> None:
    cursor = read_cursor(draft, session)
    if cursor.get("assistant") in gone:
        move_cursor(draft, session, assistant=None)
    if cast("int", cursor.get("compaction", -1)) > boundary:
        move_cursor(draft, session, compaction=newest_compaction(draft, session, before=boundary + 1))


PROJECTORS: dict[type, Any] = {
    events.RevertStaged: staged,
    events.RevertCleared: cleared,
    events.RevertCommitted: committed,
}
