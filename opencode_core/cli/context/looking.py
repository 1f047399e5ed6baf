"""Looks at one session for the commands: at its log, and at what its model would be told now. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from opencode_core.cli.call import Call
from opencode_core.cli.context.warned import noted
from opencode_core.cli.hosts import open_host
from opencode_core.cli.storage.stores import open_unprepared
from opencode_core.context.compare import told_by_baseline, told_by_update
from opencode_core.context.explain import explain
from opencode_core.context.told import Explanation, SourceTold
from opencode_core.errors import OpencodeError, SessionError, SessionNotFoundError, SourceFaultError
from opencode_core.model.plugin import Diagnostic, PluginStatus

if TYPE_CHECKING:
    from opencode_core.context.epoch import Step
    from opencode_core.host import Host
    from opencode_core.model.context import Boundary, Observation, Snapshot
    from opencode_core.model.session import Session
    from opencode_core.plugins.place import Place
    from opencode_core.plugins.scope import View
    from opencode_core.ports.storage import Storage
    from opencode_core.session.boundary import Boundaries
    from opencode_core.session.store import SessionStore


@attrs.frozen(kw_only=True)
class Missing:
    """A source that cannot be told now: who contributes it, why, and whether a first baseline waits for it."""

    key: str
    owner: str
    reason: str
    required: bool


@attrs.frozen(kw_only=True)
class Now:
    """What would be told if a turn started now.

    Attributes:
        agent: Which agent would be asked; empty when that is not known.
        prompts: How many pending prompts would be promoted.
        step: What would become of the epoch; None when it cannot be said.
        reason: Why a new epoch would begin; empty when none would.
        text: Exactly what the model would be told.
        sources: Because of which sources.
        owners: Who contributes the sources that are here now, by key.
        missing: The sources that cannot be told.
        error: Why it cannot be said.
        warnings: What was noted about plugins on the way.
    """

    agent: str = ""
    prompts: int = 0
    step: Step | None = None
    reason: str = ""
    text: str = ""
    sources: tuple[SourceTold, ...] = ()
    owners: Mapping[str, str] = attrs.field(factory=dict)
    missing: tuple[Missing, ...] = ()
    error: Exception | None = None
    warnings: tuple[Diagnostic, ...] = ()


@attrs.frozen(kw_only=True)
class Seen:
    """One session, as it was looked at.

    Attributes:
        session: The session.
        store: Where it is kept.
        explanation: What its log says.
        now: What would be told now.
        plugins: The plugins that were there.
    """

    session: Session
    store: str
    explanation: Explanation
    now: Now
    plugins: tuple[PluginStatus, ...]


async def look_at(call: Call, session: str, url: str | None) -> Seen:
    """Reads everything about one session.

    Raises:
        SessionError: There is no such session, or it cannot be read.
        LogError: An event of it cannot be read.
        StorageError: The store cannot be opened, is not of the present version, or failed.
        OpencodeError: The directory, the configuration or, in strict mode, a plugin is wrong.
    """
    from opencode_core.storage.schema import prepare

    async with open_host(call, watch=False) as host, open_unprepared(host, url) as storage:
        await prepare(storage, create=False, migrate=False)
        store, sessions = (await storage.facts()).place, _sessions(storage)
        try:
            found = await sessions.get(session)
        except SessionNotFoundError:
            raise SessionError(
                f"There is no session '{session}' in the store '{store}'.",
                "Check the id, or name another store with '--storage'.",
                session=session,
            ) from None
        explanation = await explain(sessions.log, session)
        now = await _now(host, sessions, found, explanation)
        return Seen(session=found, store=store, explanation=explanation, now=now, plugins=host.plugins.list())


def _sessions(storage: Storage) -> SessionStore:
    """Returns the sessions of a store that is only looked at: nothing gets an id or a time."""
    from opencode_core.ids import Ids
    from opencode_core.session.store import SessionStore
    from opencode_core.storage.log import EventLog

    ids = Ids(lambda: 0)
    return SessionStore(log=EventLog(storage=storage, ids=ids), ids=ids, now=lambda: 0)


async def _now(host: Host, sessions: SessionStore, session: Session, explanation: Explanation) -> Now:
    witness = _Witness()
    try:
        async with _location(host, session.directory) as place:
            try:
                boundaries = witness.beside(await host.boundaries(place, sessions=sessions))
                sample, step = await boundaries.look(session.id)
            finally:  # with the Location go its own plugins, and what was noted about them
                witness.warnings = noted(host)
    except Exception as error:  # whatever it is, what happened before can be shown all the same
        now = Now(error=error)
    else:
        now = attrs.evolve(_told(step, explanation), agent=sample.agent, prompts=len(sample.prompts))
    warnings = noted(host, *witness.warnings)
    return attrs.evolve(now, owners=witness.owners, missing=witness.missing, warnings=warnings)


@asynccontextmanager
async def _location(host: Host, directory: str) -> AsyncIterator[Place]:
    if directory == str(host.location.location.directory):
        yield host.location
        return
    async with host.open_location(directory) as place:
        yield place


def _told(step: Step, explanation: Explanation) -> Now:
    from opencode_core.context.epoch import Admit, Begin

    before: Snapshot = explanation.last
    match step:
        case Begin(baseline=baseline):
            sources = told_by_baseline(baseline.parts, baseline.snapshot, before)
            return Now(step=step, reason=_reason(step, explanation), text=baseline.text, sources=sources)
        case Admit(updated=updated):
            sources = told_by_update(updated.parts, updated.changed, updated.removed, before)
            return Now(step=step, text=updated.text, sources=sources)
    return Now(step=step)


def _reason(step: Step, explanation: Explanation) -> str:
    """Returns why an epoch would begin: without one, that is how the last one ended."""
    reason: str = getattr(step, "reason", "")
    ended = explanation.epochs[-1].end if explanation.epochs else None
    return ended.kind if reason == "first" and ended is not None else reason


@attrs.define(eq=False)
class _Witness:
    """Keeps what was observed on the way to a decision."""

    warnings: tuple[Diagnostic, ...] = ()
    _observation: Observation | None = None
    _faults: dict[str, str] = attrs.field(factory=dict)

    def beside(self, boundaries: Boundaries) -> Boundaries:
        async def observe(view: View, boundary: Boundary) -> Observation:
            self._observation = await boundaries.observe(view, boundary)
            return self._observation

        def on_fault(fault: SourceFaultError, owner: str) -> None:
            self._faults[fault.key] = fault.problem
            boundaries.on_fault(fault, owner)

        return attrs.evolve(boundaries, observe=observe, on_fault=on_fault)

    @property
    def owners(self) -> Mapping[str, str]:
        return {} if self._observation is None else self._observation.owners

    @property
    def missing(self) -> tuple[Missing, ...]:
        seen = self._observation
        if seen is None:
            return ()
        keys = {*seen.unavailable, *self._faults}
        return tuple(
            Missing(
                key=source.key,
                owner=seen.owners.get(source.key, ""),
                reason=self._faults.get(source.key) or seen.reasons.get(source.key, ""),
                required=source.required,
            )
            for source in seen.sources
            if source.key in keys
        )


def words(error: Exception) -> tuple[str, str]:
    """Returns what an error says happened, and what to do about it."""
    if isinstance(error, OpencodeError):
        return error.problem, error.remedy
    return f"{type(error).__name__}: {error}", ""
