"""Crosses the Safe Provider-Turn Boundary: promotes input, then tells the model what changed. Calls no provider.

Agent, model and input are sampled once, then every source is observed, then one transaction promotes the sampled input
and records what follows from the observation. So input that comes too late, and a switch that comes too late, wait for
the next boundary; and when a first baseline cannot be complete, the input stays pending.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import attrs

from opencode_core.context.epoch import Admit, Begin, OnSourceFault, Stay, Step, decide
from opencode_core.context.recording import record
from opencode_core.context.standing import Standing, Standings, read_compaction, read_revision, read_standing
from opencode_core.errors import SessionElsewhereError
from opencode_core.model.agent import Agent
from opencode_core.model.context import Boundary, Observation
from opencode_core.model.location import Location
from opencode_core.model.prompt import AdmittedPrompt
from opencode_core.model.rows import VISITED, Rows
from opencode_core.model.session import ModelChoice, Session
from opencode_core.plugins.scope import View
from opencode_core.session.promotion import pending, promotable, promote
from opencode_core.session.reading import get_session
from opencode_core.session.selecting import select_agent
from opencode_core.session.store import SessionStore
from opencode_core.storage.writer import Writer

Observe: TypeAlias = Callable[[View, Boundary], Awaitable[Observation]]


@attrs.frozen(kw_only=True)
class Sample:
    """What one turn is about, as it was when the turn started.

    Attributes:
        session: The session.
        agent: The name of its agent.
        definition: The agent itself; None when nobody defines it.
        model: Its model; None when none was chosen.
        prompts: What will be promoted.
        standing: Its epoch, and its newest compaction.
        visited: The folders that it has read files out of.
    """

    session: Session
    agent: str
    definition: Agent | None
    model: ModelChoice | None
    prompts: tuple[AdmittedPrompt, ...]
    standing: Standing
    visited: tuple[Path, ...]


@attrs.frozen(kw_only=True)
class Crossed:
    """What came of a boundary.

    Attributes:
        sample: What the turn is about.
        promoted: The messages that were promoted.
        step: What became of the epoch.
        standing: The epoch as it is now.
    """

    sample: Sample
    promoted: tuple[str, ...]
    step: Step
    standing: Standing

    @property
    def baseline(self) -> str:
        """What the request begins with, byte for byte."""
        assert self.standing.epoch is not None
        return self.standing.epoch.baseline


@attrs.define(eq=False, repr=False, kw_only=True)
class Boundaries:
    """The boundaries of the sessions in one Location.

    Attributes:
        store: All sessions.
        location: Which Location.
        read: Reads what is contributed to it now.
        observe: Observes every source.
        on_fault: Is told of a source that cannot be rendered or encoded.
    """

    store: SessionStore
    location: Location
    read: Callable[[], View]
    observe: Observe
    on_fault: OnSourceFault
    _standings: Standings = attrs.field(init=False, factory=Standings)

    async def cross(self, session: str, *, is_idle: bool = True) -> Crossed:
        """Promotes what is due, and lets the model know of everything that changed, in one transaction.

        Args:
            session: The session.
            is_idle: Whether it would be idle without new input, so that a queued prompt is due.

        Raises:
            SessionNotFoundError: There is no such session.
            SessionElsewhereError: It runs in another Location; what is pending still is.
            InitializationBlockedError: It has no epoch yet, and required sources are unavailable.
            SnapshotDecodeError: What its model was told last cannot be read.
            ContextError: The System Context cannot be composed.
            StorageError: The store failed.
        """
        while True:
            sample, step = await self._look(session, is_idle)
            crossed = await self._commit(sample, step)
            if crossed is not None:
                return crossed

    async def look(self, session: str) -> tuple[Sample, Step]:
        """Returns what `cross` would do now, and changes nothing.

        Raises:
            OpencodeError: As `cross` does.
        """
        return await self._look(session, True)

    async def _look(self, session: str, is_idle: bool) -> tuple[Sample, Step]:
        view = self.read()
        sample = await self.store.log.storage.view(lambda rows: self._sample(rows, view, session, is_idle))
        boundary = Boundary(location=self.location, session=session, agent=sample.definition, visited=sample.visited)
        return sample, decide(sample.standing, await self.observe(view, boundary), on_fault=self.on_fault)

    def _sample(self, rows: Rows, view: View, session: str, is_idle: bool) -> Sample:
        found = get_session(rows, session)
        self._refuse_elsewhere(found)
        name, definition = select_agent(view, found.agent)
        return Sample(
            session=found,
            agent=name,
            definition=definition,
            model=found.model,
            prompts=promotable(pending(rows, session), is_idle=is_idle),
            standing=self._standings.read(rows, session),
            visited=tuple(sorted(Path(str(folder)) for _, folder in rows.scan(VISITED, (session,)))),
        )

    async def _commit(self, sample: Sample, step: Step) -> Crossed | None:
        """Carries it out; None when somebody else told the model something meanwhile."""
        session, at = sample.session.id, self.store.now()
        message = self.store.ids.ascending("message")
        if isinstance(step, Stay) and not sample.prompts:
            is_so = await self.store.log.storage.view(lambda rows: self._is_so(rows, sample))
            return Crossed(sample=sample, promoted=(), step=step, standing=sample.standing) if is_so else None

        def work(writer: Writer) -> Crossed | None:
            if not self._is_so(writer.rows, sample):
                return None
            if isinstance(step, Begin):  # before anything is promoted, or with what was promoted before
                record(writer, session, step, at=at, message=message)
            promoted = promote(writer, sample.prompts, at=at)
            if isinstance(step, Admit):
                record(writer, session, step, at=at, message=message)
            standing = sample.standing if isinstance(step, Stay) else read_standing(writer.rows, session)
            return Crossed(sample=sample, promoted=promoted, step=step, standing=standing)

        return await self.store.commit(session, work)

    def _is_so(self, rows: Rows, sample: Sample) -> bool:
        """Whether the session still is here and stands where it stood; much may happen while sources are observed."""
        session = get_session(rows, sample.session.id)
        self._refuse_elsewhere(session)
        return _revision(rows, session.id) == _expected(sample.standing)

    def _refuse_elsewhere(self, session: Session) -> None:
        if session.directory != str(self.location.directory):
            raise SessionElsewhereError(session.id, session.directory, str(self.location.directory))


def _revision(rows: Rows, session: str) -> tuple[int, int | None]:
    return read_revision(rows, session), read_compaction(rows, session)


def _expected(standing: Standing) -> tuple[int, int | None]:
    return (-1 if standing.epoch is None else standing.epoch.revision), standing.compaction
