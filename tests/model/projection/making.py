"""A conversation in memory, told event by event."""

import json
from typing import Any

import attrs

from opencode_core.model.codec import decode_message, decode_part, decode_session
from opencode_core.model.event import conversation as c
from opencode_core.model.event import session as s
from opencode_core.model.event.base import Recorded, SessionEvent
from opencode_core.model.message import Message
from opencode_core.model.part import Part
from opencode_core.model.projection import Memory, fold
from opencode_core.model.prompt import Prompt
from opencode_core.model.rows import (
    CURSORS,
    MESSAGE_ORDER,
    MESSAGES,
    PART_ORDER,
    PARTS,
    SESSION_PLACES,
    SESSIONS,
    Change,
)
from opencode_core.model.session import ModelChoice, Session

MODEL = ModelChoice(provider="acme", model="large")


@attrs.define
class Conversation:
    """The rows of a store, and the events that led to them."""

    rows: Memory = attrs.field(factory=Memory)
    events: list[Recorded] = attrs.field(factory=list)
    id: str = "ses_1"

    def tell(self, *events: SessionEvent) -> list[Change]:
        """Makes events happen, one after the other, and returns what the last one changed."""
        changes: list[Change] = []
        for event in events:
            sequence = sum(each.aggregate == event.session for each in self.events)
            recorded = Recorded(aggregate=event.session, sequence=sequence, id=f"evt_{9_999 - sequence}", event=event)
            changes = fold([recorded], self.rows)
            self.rows.apply(through_text(changes))
            self.events.append(recorded)
        return changes

    @property
    def session(self) -> Session:
        """The session."""
        place: Any = self.rows.get(SESSION_PLACES, (self.id,))
        return decode_session(self.rows.get(SESSIONS, (place["project"], self.id)), session=self.id)

    @property
    def order(self) -> list[str]:
        """The ids of the messages, in their order."""
        return [row["id"] for row in self.below(MESSAGE_ORDER, self.id)]

    @property
    def messages(self) -> list[Message]:
        """The messages, in their order."""
        return [self.message(id) for id in self.order]

    def message(self, id: str) -> Any:
        """One message."""
        return decode_message(self.rows.get(MESSAGES, (self.id, id)), session=self.id, message=id)

    def part_order(self, message: str) -> list[str]:
        """The ids of a message's parts, in their order."""
        return [row["id"] for row in self.below(PART_ORDER, message)]

    def part(self, message: str, id: str) -> Any:
        """One part."""
        return decode_part(self.rows.get(PARTS, (message, id)), session=self.id, message=message)

    def parts(self, message: str) -> list[Part]:
        """A message's parts, in their order."""
        return [self.part(message, id) for id in self.part_order(message)]

    def cursor(self) -> Any:
        """Where the conversation stands."""
        return self.rows.get(CURSORS, (self.id,)) or {}

    def below(self, table: str, *prefix: str | int) -> list[Any]:
        """The documents below a prefix, in key order."""
        return [document for _, document in self.rows.scan(table, prefix)]


def through_text(changes: list[Change]) -> list[Change]:
    """Returns changes as a store would give them back."""
    return [attrs.evolve(change, document=json.loads(json.dumps(change.document))) for change in changes]


def conversation(**fields: Any) -> Conversation:
    """A conversation in which only the session was created."""
    told = Conversation()
    told.tell(s.SessionCreated(**{"session": "ses_1", "at": 1, "project": "prj", "directory": "/w", **fields}))
    return told


def admitted(message: str, text: str = "hi", at: int = 10, **fields: Any) -> s.PromptAdmitted:
    """A prompt with nothing but a text."""
    event = {"prompt": Prompt(text=text), "parts": (f"prt_{message}",), **fields}
    return s.PromptAdmitted(**{"session": "ses_1", "at": at, "message": message, **event})


def promoted(message: str, admission: int, at: int = 11, admitted_at: int = 10, **fields: Any) -> s.PromptPromoted:
    """The promotion of a prompt."""
    event = {"admitted": admission, "admitted_at": admitted_at, **fields}
    return s.PromptPromoted(**{"session": "ses_1", "at": at, "message": message, **event})


def step(message: str, at: int = 20, **fields: Any) -> c.StepStarted:
    """A step began."""
    return c.StepStarted(
        **{"session": "ses_1", "at": at, "message": message, "part": f"prt_start_{message}", "model": MODEL, **fields}
    )


def ended(message: str, at: int = 30, **fields: Any) -> c.StepEnded:
    """A step ended."""
    return c.StepEnded(
        **{"session": "ses_1", "at": at, "message": message, "part": f"prt_end_{message}", "finish": "stop", **fields}
    )


def part(cls: type, message: str, id: str, at: int = 25, **fields: Any) -> Any:
    """Something happened to a part."""
    return cls(session="ses_1", at=at, message=message, part=id, **fields)


def called(message: str, id: str, at: int = 25, **fields: Any) -> c.ToolCalled:
    """A tool is being called."""
    event = {"call": f"call_{id}", "tool": "bash", "input": {"command": "ls"}, **fields}
    return c.ToolCalled(**{"session": "ses_1", "at": at, "message": message, "part": id, **event})


def said(message: str, text: str = "a", at: int = 15) -> c.SyntheticAdded:
    """Something was said in the person's place."""
    return c.SyntheticAdded(session="ses_1", at=at, message=message, text=text)


def imported(message: str, role: str, parts: tuple[Any, ...] = (), at: int = 5, **document: Any) -> c.MessageImported:
    """A message came from elsewhere."""
    who: dict[str, Any] = {"id": message, "sessionID": "ses_1", "role": role, "time": {"created": 1}}
    return c.MessageImported(session="ses_1", at=at, message=message, document={**who, **document}, parts=parts)


ASSISTANT: dict[str, Any] = {
    "parentID": "",
    "modelID": "large",
    "providerID": "acme",
    "agent": "build",
    "path": {"cwd": "/w", "root": "/w"},
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
}
