"""The mixed work of a host: what one task does to its sessions, acknowledging each step. Opens no store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import attrs

from opencode_core.model.event.base import DurableEvent, Recorded
from opencode_core.model.event.conversation import (
    StepEnded,
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextGrew,
    TextStarted,
    ToolCalled,
    ToolSucceeded,
)
from opencode_core.model.event.session import PromptAdmitted, PromptPromoted, SessionTitled
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import ModelChoice
from opencode_core.session.store import SessionStore
from opencode_core.storage.writer import Writer
from tests.faults.ledger import say, say_recorded

HERE: Any = {"project": "faults", "directory": "/work"}
MODEL = ModelChoice(provider="demo", model="small")
SHARED = "ses_everybody"
"""How the ids of sessions begin that all tasks work on."""

LONGEST, LONGEST_OF_LARGE = 60, 12
"""A session with more events than this is removed, so that looking at the store takes no longer after many rounds."""


def a_word(sessions: SessionStore, session: str, text: str) -> SyntheticAdded:
    """Returns one small fact."""
    return SyntheticAdded(session=session, at=sessions.now(), message=sessions.ids.ascending("message"), text=text)


async def remove(sessions: SessionStore, session: str) -> None:
    """Removes a session; it says so before, because nobody knows what became of it when it never says so again."""
    say("removing", session)
    await sessions.remove(session)
    say("removed", session)


@attrs.define
class Task:
    """One of the tasks of a host.

    Attributes:
        sessions: The store.
        random: Decides what is done next.
        mine: The sessions that only this task works on; it alone may remove them.
        shared: A session that all tasks work on, and none of them removes.
        is_large: Whether all texts are large, so that journals fill up and are emptied.
    """

    sessions: SessionStore
    random: Random
    mine: list[str]
    shared: str
    is_large: bool = False

    async def step(self) -> None:
        """Does one thing, and acknowledges it."""
        if not self.mine:
            return await self.create()
        chosen = self.random.choice(self.mine)
        if await self.sessions.log.head(chosen) > (LONGEST_OF_LARGE if self.is_large else LONGEST):
            return await self.remove(chosen)
        deeds: Sequence[tuple[int, Callable[[str], Awaitable[None]]]] = (
            (30, self.say),
            (20, self.answer),
            (15, self.stream),
            (10, self.prompt),
            (10, self.promote),
            (10, self.say_twice),
            (5, self.call),
            (3, self.fork),
            (2, self.remove),
            (4, lambda _: self.create()),
        )
        [deed] = self.random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])
        return await deed(self.shared if deed == self.say and self.random.random() < 0.1 else chosen)

    async def create(self) -> None:
        """Creates a session."""
        if len(self.mine) < 4:
            self.mine.append((await self.sessions.create(**HERE)).id)
            await self._acknowledge_all(self.mine[-1])

    async def say(self, session: str) -> None:
        """Appends one event."""
        await self._append(SyntheticAdded(message=self._id("message"), text=self._text(), **self._fact(session)))

    async def answer(self, session: str) -> None:
        """Appends three events, all or none."""
        message, part = self._id("message"), self._id("part")
        fact = self._fact(session, of={session: 3})
        await self._append(
            StepStarted(message=message, part=self._id("part"), model=MODEL, **fact),
            TextStarted(message=message, part=part, **fact),
            TextEnded(message=message, part=part, text=self._text(), **fact),
        )

    async def stream(self, session: str) -> None:
        """Lets a text grow, and ends it; a kill in between leaves it open."""
        message, part, text = self._id("message"), self._id("part"), ""
        begun = self._fact(session, of={session: 2})
        await self._append(
            StepStarted(message=message, part=self._id("part"), model=MODEL, **begun),
            TextStarted(message=message, part=part, **begun),
        )
        for _ in range(self.random.randrange(5)):
            more = self._text()
            await self._append(TextGrew(message=message, part=part, offset=len(text), text=more, **self._fact(session)))
            text += more
        ended = self._fact(session, of={session: 2})
        await self._append(
            TextEnded(message=message, part=part, text=text, **ended),
            StepEnded(message=message, part=self._id("part"), finish="stop", **ended),
        )

    async def prompt(self, session: str) -> None:
        """Admits a prompt."""
        await self._append(
            PromptAdmitted(
                message=self._id("message"),
                prompt=Prompt(text=self._text() or "?"),
                parts=(self._id("part"),),
                **self._fact(session),
            )
        )

    async def promote(self, session: str) -> None:
        """Promotes every prompt that is pending, in one transaction that reads them."""
        group, at = self._id("tool"), self.sessions.now()
        waiting = await self.sessions.pending(session)
        fact: Any = {"session": session, "at": at, "metadata": {"group": group, "of": {session: len(waiting)}}}

        def work(writer: Writer) -> list[Recorded]:
            return [
                writer.append(
                    PromptPromoted(
                        message=each.message,
                        admitted=each.admitted,
                        admitted_at=each.at,
                        delivery=each.delivery,
                        **fact,
                    )
                )
                for each in waiting
            ]

        if waiting:
            say_recorded(await self.sessions.commit(session, work))

    async def say_twice(self, session: str) -> None:
        """Appends to two logs, all or none."""
        fact = self._fact(session, of={session: 1, self.shared: 1})
        text = SyntheticAdded(message=self._id("message"), text=self._text(), **fact)
        await self._append(text, SessionTitled(title=text.message, **{**fact, "session": self.shared}))

    async def call(self, session: str) -> None:
        """Calls a tool: the call is durable before its result."""
        message, part = self._id("message"), self._id("part")
        fact = self._fact(session, of={session: 2})
        await self._append(
            StepStarted(message=message, part=self._id("part"), model=MODEL, **fact),
            ToolCalled(message=message, part=part, call=part, tool="bash", input={"command": "ls"}, **fact),
        )
        await self._append(ToolSucceeded(message=message, part=part, output=self._text(), **self._fact(session)))

    async def fork(self, session: str) -> None:
        """Copies a session whole."""
        if len(self.mine) < 4:
            self.mine.append((await self.sessions.fork(session)).id)
            await self._acknowledge_all(self.mine[-1])

    async def remove(self, session: str) -> None:
        """Removes a session whole."""
        self.mine.remove(session)
        await remove(self.sessions, session)

    async def _append(self, *events: DurableEvent) -> None:
        say_recorded(await self.sessions.log.append(*events))

    async def _acknowledge_all(self, session: str) -> None:
        say_recorded((await self.sessions.log.history(session, limit=1000, private=True)).events)

    def _fact(self, session: str, *, of: dict[str, int] | None = None) -> Any:
        metadata = None if of is None else {"group": self._id("tool"), "of": of}
        return {"session": session, "at": self.sessions.now(), "metadata": metadata}

    def _id(self, kind: Any) -> str:
        return self.sessions.ids.ascending(kind)

    def _text(self) -> str:
        size = 120_000 if self.is_large else self.random.choices([20, 500, 9_000, 60_000], [70, 20, 9, 1])[0]
        return f"{self.random.random()} " * self.random.randrange(size // 20 + 1)
