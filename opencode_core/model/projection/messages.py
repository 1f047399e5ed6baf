"""What facts of whole messages do to the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs

from opencode_core.errors import IllegalTransitionError, MessageDecodeError
from opencode_core.model.codec import decode_message, decode_part
from opencode_core.model.event import conversation as events
from opencode_core.model.event import session as session_events
from opencode_core.model.json import JSON
from opencode_core.model.message import (
    AssistantMessage,
    CompactionMessage,
    Message,
    MessageTime,
    ShellMessage,
    SyntheticMessage,
    UserMessage,
    UserSummary,
)
from opencode_core.model.part import Moment, Part
from opencode_core.model.projection.context import retract
from opencode_core.model.projection.stored import (
    add_document,
    add_message,
    message_sequence,
    move_cursor,
    read_cursor,
    read_message,
    read_session,
    remove_message,
    write_message,
    write_session,
)
from opencode_core.model.rows import MESSAGE_ORDER, PART_ORDER, PARTS, Draft


def synthetic_added(draft: Draft, event: events.SyntheticAdded, sequence: int) -> None:
    """The conversation has a synthetic message."""
    time = Moment(created=event.at)
    add_message(draft, sequence, SyntheticMessage(id=event.message, session=event.session, time=time, text=event.text))


def shell_started(draft: Draft, event: events.ShellStarted, sequence: int) -> None:
    """The conversation has a command that runs."""
    message = ShellMessage(
        id=event.message,
        session=event.session,
        time=MessageTime(created=event.at),
        call=event.call,
        command=event.command,
        metadata=event.metadata,
    )
    add_message(draft, sequence, message)


def shell_ended(draft: Draft, event: events.ShellEnded, _sequence: int) -> None:
    """The command has its output."""
    message = read_message(draft, event.session, event.message, ShellMessage)
    if message.time.completed is not None:
        raise IllegalTransitionError(
            f"The command of the message '{event.message}' ended already.", "End it once.", session=event.session
        )
    time = attrs.evolve(message.time, completed=event.at)
    write_message(draft, attrs.evolve(message, output=event.output, time=time))


def compaction_started(draft: Draft, event: session_events.CompactionStarted, _sequence: int) -> None:
    """The session says that it is being compacted; the conversation is as before."""
    session = read_session(draft, event.session)
    write_session(draft, attrs.evolve(session, time=attrs.evolve(session.time, compacting=event.at)))


def compaction_ended(draft: Draft, event: session_events.CompactionEnded, sequence: int) -> None:
    """The conversation has the summary, and begins there for the model."""
    message = CompactionMessage(
        id=event.message,
        session=event.session,
        time=Moment(created=event.at),
        text=event.text,
        recent=event.recent,
        auto=event.auto,
        overflow=event.overflow,
        tail_start=event.tail_start,
        metadata=event.metadata,
    )
    add_message(draft, sequence, message)
    move_cursor(draft, event.session, compaction=sequence)
    _stop_compacting(draft, event.session, event.at)


def compaction_failed(draft: Draft, event: session_events.CompactionFailed, _sequence: int) -> None:
    """The session is no longer being compacted."""
    _stop_compacting(draft, event.session, event.at)


def message_imported(draft: Draft, event: events.MessageImported, sequence: int) -> None:
    """The conversation has a message exactly as its documents say."""
    message = decode_message(event.document, session=event.session, message=event.message)
    parts = [decode_part(document, session=event.session, message=event.message) for document in event.parts]
    _check_ids(event, message, parts)
    add_document(draft, sequence, event.session, event.message, event.document)
    for index, (part, document) in enumerate(zip(parts, event.parts, strict=True)):
        draft.put(PARTS, (event.message, part.id), document)
        draft.put(PART_ORDER, (event.message, sequence, index), {"id": part.id})
    if isinstance(message, AssistantMessage):
        move_cursor(draft, event.session, assistant=None if message.time.completed is not None else message.id)
    if isinstance(message, CompactionMessage):
        move_cursor(draft, event.session, compaction=sequence)


def message_summarized(draft: Draft, event: events.MessageSummarized, _sequence: int) -> None:
    """The user message says what it led to."""
    message = read_message(draft, event.session, event.message, UserMessage)
    summary = UserSummary(title=event.title, body=event.body, diffs=event.diffs)
    write_message(draft, attrs.evolve(message, summary=summary))


def message_removed(draft: Draft, event: events.MessageRemoved, _sequence: int) -> None:
    """The message is gone, with its parts."""
    sequence = message_sequence(draft, event.session, event.message)
    retract(draft, event.session, sequence)
    remove_message(draft, event.session, event.message, sequence)
    cursor = read_cursor(draft, event.session)
    if cursor.get("assistant") == event.message:
        move_cursor(draft, event.session, assistant=None)
    if cursor.get("compaction") == sequence:
        move_cursor(draft, event.session, compaction=newest_compaction(draft, event.session, before=sequence))


def newest_compaction(draft: Draft, session: str, *, before: int) -> int | None:
    """Returns the sequence of the newest compaction before another sequence."""
    for key, document in reversed(draft.scan(MESSAGE_ORDER, (session,))):
        place = cast("Mapping[str, JSON]", document)
        if cast("int", key[1]) < before and place["role"] == "compaction":
            return cast("int", key[1])
    return None


def _check_ids(event: events.MessageImported, message: Message, parts: Sequence[Part]) -> None:
    """Refuses documents that say they are another's, for their next change would be written there."""
    places = {(part.session, part.message) for part in parts} | {(message.session, message.id)}
    if places != {(event.session, event.message)} or len({part.id for part in parts}) < len(parts):
        raise MessageDecodeError(
            f"The documents of the message '{event.message}' name another message or session, or a part twice.",
            "Give them the ids of where they are to be.",
            session=event.session,
            message=event.message,
        )


def _stop_compacting(draft: Draft, session: str, at: int) -> None:
    found = read_session(draft, session)
    write_session(draft, attrs.evolve(found, time=attrs.evolve(found.time, compacting=None, updated=at)))


PROJECTORS: dict[type, Any] = {
    events.SyntheticAdded: synthetic_added,
    events.ShellStarted: shell_started,
    events.ShellEnded: shell_ended,
    session_events.CompactionStarted: compaction_started,
    session_events.CompactionEnded: compaction_ended,
    session_events.CompactionFailed: compaction_failed,
    events.MessageImported: message_imported,
    events.MessageSummarized: message_summarized,
    events.MessageRemoved: message_removed,
}
