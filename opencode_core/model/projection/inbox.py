"""What admissions and promotions do to the inbox and the conversation."""

from __future__ import annotations

from typing import Any

import attrs

from opencode_core.errors import LifecycleConflictError, PromptConflictError
from opencode_core.model.codec import decode, encode
from opencode_core.model.event import session as events
from opencode_core.model.message import UserMessage
from opencode_core.model.part import AgentPart, FilePart, Moment, Part, SubtaskPart, TextPart
from opencode_core.model.projection.sessions import change
from opencode_core.model.projection.stored import add_part, place_message, session_key
from opencode_core.model.prompt import AdmittedPrompt, Prompt
from opencode_core.model.rows import INBOX, MESSAGE_PLACES, PENDING, PROMOTED, Draft
from opencode_core.model.session import ModelChoice


def admitted(draft: Draft, event: events.PromptAdmitted, sequence: int) -> None:
    """The prompt is pending, and its id is taken."""
    session_key(draft, event.session)
    place = draft.read(MESSAGE_PLACES, (event.message,))
    if place is not None:
        raise PromptConflictError(
            f"The prompt id '{event.message}' is already used.",
            "Make a new id for another prompt.",
            session=event.session,
        )
    if len(event.parts) != event.prompt.pieces:
        raise LifecycleConflictError(
            f"The prompt '{event.message}' becomes {event.prompt.pieces} parts, but has ids for {len(event.parts)}.",
            "Give 'parts' one new id for the text and for each file, agent and subtask.",
            session=event.session,
        )
    row = AdmittedPrompt(
        message=event.message,
        session=event.session,
        delivery=event.delivery,
        at=event.at,
        admitted=sequence,
        prompt=event.prompt,
        parts=event.parts,
        metadata=event.metadata,
    )
    draft.put(INBOX, (event.session, PENDING, sequence), encode(row))
    draft.put(MESSAGE_PLACES, (event.message,), {"session": event.session, "admitted": sequence})


def promoted(draft: Draft, event: events.PromptPromoted, sequence: int) -> None:
    """The prompt is a user message, and no longer pending."""
    document = draft.get(INBOX, (event.session, PENDING, event.admitted))
    row = None if document is None else decode(document, AdmittedPrompt)
    told = (event.message, event.session, event.delivery, event.admitted_at)
    if row is None or row.prompt is None or (row.message, row.session, row.delivery, row.at) != told:
        raise LifecycleConflictError(
            f"The promotion of '{event.message}' does not fit what was admitted in session '{event.session}'.",
            "Promote each admitted prompt once, as it was admitted.",
            session=event.session,
        )
    draft.delete(INBOX, (event.session, PENDING, event.admitted))
    kept = attrs.evolve(row, promoted=sequence, prompt=None, parts=(), metadata=None)
    draft.put(INBOX, (event.session, PROMOTED, event.admitted), encode(kept))
    _say(draft, sequence, row, row.prompt)
    change(draft, event)


def _say(draft: Draft, sequence: int, row: AdmittedPrompt, prompt: Prompt) -> None:
    model = prompt.model
    message = UserMessage(
        id=row.message,
        session=row.session,
        time=Moment(created=row.at),
        agent=prompt.agent,
        model=None if model is None else ModelChoice(provider=model.provider, model=model.model),
        variant=None if model is None else model.variant,
        system=prompt.system,
        tools=prompt.tools,
        format=prompt.format,
        metadata=row.metadata,
    )
    place_message(draft, sequence, row.session, row.message, encode(message))
    for index, part in enumerate(_parts(row, prompt)):
        add_part(draft, sequence, part, index)


def _parts(row: AdmittedPrompt, prompt: Prompt) -> list[Part]:
    makers: list[Any] = []
    if prompt.text:
        makers.append(lambda **who: TextPart(text=prompt.text, **who))
    makers += [_maker(FilePart, file) for file in prompt.files]
    makers += [_maker(AgentPart, agent) for agent in prompt.agents]
    makers += [_maker(SubtaskPart, subtask) for subtask in prompt.subtasks]
    return [make(id=id, session=row.session, message=row.message) for id, make in zip(row.parts, makers, strict=True)]


def _maker(cls: type, piece: Any) -> Any:
    fields = {field.name: getattr(piece, field.name) for field in attrs.fields(type(piece))}
    return lambda **who: cls(**who, **fields)


PROJECTORS: dict[type, Any] = {events.PromptAdmitted: admitted, events.PromptPromoted: promoted}
