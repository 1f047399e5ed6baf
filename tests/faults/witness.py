"""Appends to one session and remembers what was acknowledged: nothing less and nothing more may be there later."""

from __future__ import annotations

import attrs

from opencode_core.model.event.base import Recorded
from opencode_core.session.store import SessionStore
from tests.faults.looking import look_into, problems
from tests.faults.work import HERE, a_word


@attrs.define(eq=False)
class Witness:
    """Somebody who uses a store and knows what must be in it.

    Attributes:
        sessions: The store.
        session: Where everything is appended.
        acknowledged: What was appended.
    """

    sessions: SessionStore
    session: str
    acknowledged: list[Recorded] = attrs.field(factory=list)

    @classmethod
    async def of(cls, sessions: SessionStore, session: str = "ses_witness") -> Witness:
        """Returns a witness of a session, which is made if it is not there, and of all that it has."""
        await sessions.create(id=session, **HERE)
        page = await sessions.log.history(session, limit=100_000, private=True)
        return cls(sessions, session, list(page.events))

    async def append(self, text: str = "") -> None:
        """Appends one event.

        Raises:
            StorageError: The store failed.
        """
        self.acknowledged += await self.sessions.log.append(a_word(self.sessions, self.session, text))

    async def objections(self) -> list[str]:
        """Returns what is wrong with the store, one sentence each."""
        page = await self.sessions.log.history(self.session, limit=100_000, private=True)
        wrong = problems(await look_into(self.sessions.log.storage))
        if list(page.events) != sorted(self.acknowledged, key=lambda each: each.sequence):
            wrong.append(f"{len(self.acknowledged)} events were acknowledged, and {len(page.events)} others are there.")
        return wrong
