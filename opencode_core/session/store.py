"""What people do to sessions: create, find, list, change, fork, export, remove. Runs none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs

from opencode_core.errors import OperationUnavailableError, SessionError
from opencode_core.ids import Ids
from opencode_core.model.event.base import EventLocation, Recorded, SessionEvent
from opencode_core.model.event.live import SessionDeleted
from opencode_core.model.event.session import AgentSwitched, ModelSwitched, SessionCreated, SessionMoved, SessionTouched
from opencode_core.model.json import JSON
from opencode_core.model.message import Entry
from opencode_core.model.permission import PermissionRule
from opencode_core.model.prompt import AdmittedPrompt
from opencode_core.model.session import ModelChoice, Session
from opencode_core.session.adopting import adopt
from opencode_core.session.editing import facts_between
from opencode_core.session.exporting import export_session, import_documents, import_events, read_export
from opencode_core.session.forking import copy_messages
from opencode_core.session.listing import Listing, SessionFilter, list_messages, list_sessions
from opencode_core.session.promotion import pending
from opencode_core.session.reading import find_session, get_session, read_context
from opencode_core.session.removing import remove
from opencode_core.session.slug import slug_of
from opencode_core.storage.log import EventLog, Page
from opencode_core.storage.writer import Writer

R = TypeVar("R")

SESSIONS_PER_PAGE = 50
MESSAGES_PER_PAGE = 50
LARGEST_PAGE = 200


@attrs.define(eq=False, repr=False, kw_only=True)
class SessionStore:
    """All sessions of one store.

    Every method raises `StorageError` when the store fails, and `MessageDecodeError` when a row cannot be read.

    Attributes:
        log: Where everything is recorded.
        ids: Makes the ids of sessions, messages and parts.
        now: Tells the time, in milliseconds since 1970.
        version: The version of the program, which new sessions remember.
    """

    log: EventLog
    ids: Ids
    now: Callable[[], int]
    version: str = ""

    async def create(
        self,
        *,
        project: str,
        directory: str,
        id: str | None = None,
        parent: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        model: ModelChoice | None = None,
        workspace: str | None = None,
        permission: tuple[PermissionRule, ...] | None = None,
    ) -> Session:
        """Creates a session, or returns the one that has this id, as it is now.

        Raises:
            InvalidKeyError: The id is not that of a session.
            InvalidEventError: An argument is not what its type says.
            SessionError: It should be its own parent.
        """
        session = self.ids.descending("session", id)
        if parent == session:
            raise SessionError(f"The session '{session}' cannot be its own parent.", "Name another.", session=session)
        created = SessionCreated(
            session=session,
            at=self.now(),
            project=project,
            directory=directory,
            title=title if title is not None else "Child session" if parent is not None else "New session",
            slug=slug_of(session),
            version=self.version,
            parent=parent,
            agent=agent,
            model=model,
            workspace=workspace,
            permission=permission,
        )

        def work(writer: Writer) -> Session:
            if find_session(writer.rows, session) is None:
                writer.append(created, location=EventLocation(directory=directory, workspace=workspace))
            return get_session(writer.rows, session)

        return await self.log.commit(work, aggregate=session)

    async def get(self, session: str) -> Session:
        """Returns a session.

        Raises:
            SessionNotFoundError: There is none.
        """
        return await self.log.storage.view(lambda rows: get_session(rows, session))

    async def list(
        self,
        *,
        project: str | None = None,
        directory: str | None = None,
        limit: int = SESSIONS_PER_PAGE,
        cursor: str | None = None,
        oldest_first: bool = False,
        archived: bool = False,
    ) -> Listing[Session]:
        """Returns a page of sessions, the newest first; an unknown cursor gives an empty one.

        Args:
            project: Only those of this project.
            directory: Only those that run here.
            limit: At most so many, and never more than 200.
            cursor: ``next`` or ``previous`` of another page.
            oldest_first: The other way round; a cursor knows its own way.
            archived: Whether those that were put away are among them.

        Raises:
            ValueError: The limit is not positive.
        """
        which = SessionFilter(project=project, directory=directory)
        return await self._list(which, limit, cursor, not oldest_first, archived)

    async def children(
        self, parent: str, *, limit: int = SESSIONS_PER_PAGE, cursor: str | None = None
    ) -> Listing[Session]:
        """Returns a page of the sessions that another one started, the newest first.

        Raises:
            ValueError: The limit is not positive.
        """
        return await self._list(SessionFilter(parent=parent), limit, cursor, True, True)

    async def touch(self, session: str) -> Session:
        """Notes that somebody was active.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        return await self._record(session, lambda at: SessionTouched(session=session, at=at))

    async def update(self, session: str, edit: Callable[[Session], Session]) -> Session:
        """Changes the title, share, permission, revert or archived time of a session in one step.

        Args:
            session: Its id.
            edit: Gets the session as it is, and returns it as it should be; it may be called more than once.

        Raises:
            SessionNotFoundError: There is no such session.
            SessionError: Something changed that has an operation of its own.
        """
        at = self.now()

        def work(writer: Writer) -> Session:
            before = get_session(writer.rows, session)
            for fact in facts_between(before, edit(before), at=at):
                writer.append(fact)
            return get_session(writer.rows, session)

        return await self.commit(session, work)

    async def archive(self, session: str) -> Session:
        """Puts a session away.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        return await self.update(session, lambda found: _with_archived(found, self.now()))

    async def unarchive(self, session: str) -> Session:
        """Takes a session out again.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        return await self.update(session, lambda found: _with_archived(found, None))

    async def switch_agent(self, session: str, agent: str) -> Session:
        """Chooses another agent for the next Provider Turn.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        message = self.ids.ascending("message")
        return await self._record(
            session, lambda at: AgentSwitched(session=session, at=at, message=message, agent=agent)
        )

    async def switch_model(self, session: str, model: ModelChoice) -> Session:
        """Chooses another model for the next Provider Turn; the same one again changes nothing.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        switched = ModelSwitched(session=session, at=self.now(), message=self.ids.ascending("message"), model=model)

        def work(writer: Writer) -> Session:
            if get_session(writer.rows, session).model != model:
                writer.append(switched)
            return get_session(writer.rows, session)

        return await self.commit(session, work)

    async def move(self, session: str, *, directory: str, project: str, workspace: str | None = None) -> Session:
        """Lets a session continue somewhere else; its Context Epoch ends.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        return await self._record(
            session,
            lambda at: SessionMoved(session=session, at=at, directory=directory, project=project, workspace=workspace),
        )

    async def remove(self, session: str) -> None:
        """Takes a session away, with its children and everything in them.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        for gone in await self.log.commit(lambda writer: remove(writer, session)):
            self.log.bus.publish(SessionDeleted(session=gone))

    async def fork(self, session: str, *, until: str | None = None) -> Session:
        """Copies a conversation into a new session, which lives on when the old one is removed.

        Args:
            session: What is copied.
            until: The message to stop at, which is not copied; None to copy all.

        Raises:
            SessionNotFoundError: There is no such session.
            MessageNotFoundError: There is no such message.
        """
        id, at = self.ids.descending("session"), self.now()

        def work(writer: Writer) -> Session:
            source = get_session(writer.rows, session)
            writer.append(_forked(source, id, at, self.version))
            copy_messages(writer, self.ids, session, id, until=until, at=at)
            return get_session(writer.rows, id)

        return await self.log.commit(work)

    async def export(self, session: str) -> dict[str, JSON]:
        """Returns everything that a session is, as one JSON document.

        Raises:
            SessionNotFoundError: There is no such session.
            LogError: An event cannot be read.
        """
        return await self.log.storage.view(lambda rows: export_session(rows, session, self.log.codec))

    async def import_(self, document: JSON) -> Session:
        """Records an exported session, of this generation or the first; the same again changes nothing.

        Raises:
            LogError: It is not an export, or another session has the same id.
            SessionError: It does not fit together.
        """
        session, content = read_export(document)
        at = self.now()

        def work(writer: Writer) -> Session:
            if not isinstance(content, list):
                import_documents(writer, session, content, at=at)
            else:
                import_events(writer, content, self.log.codec)
            return get_session(writer.rows, session)

        return await self.log.commit(work, aggregate=session)

    async def messages(
        self, session: str, *, limit: int = MESSAGES_PER_PAGE, cursor: str | None = None, oldest_first: bool = False
    ) -> Listing[Entry]:
        """Returns a page of messages with their parts, the newest first; an unknown cursor gives an empty one.

        Raises:
            SessionNotFoundError: There is no such session.
            ValueError: The limit is not positive.
        """
        size = _checked(limit)
        return await self.log.storage.view(
            lambda rows: list_messages(rows, session, limit=size, cursor=cursor, reverse=not oldest_first)
        )

    async def stream(self, session: str, *, oldest_first: bool = False) -> AsyncIterator[Entry]:
        """Yields all messages with their parts, from the newest to the oldest, a page at a time.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        cursor: str | None = None
        while True:
            page = await self.messages(session, cursor=cursor, oldest_first=oldest_first)
            for entry in page.items:
                yield entry
            if page.next is None:
                return
            cursor = page.next

    async def context(self, session: str) -> tuple[Entry, ...]:
        """Returns the messages that the model is shown, in order.

        Raises:
            SessionNotFoundError: There is no such session.
        """

        def read(rows: Any) -> tuple[Entry, ...]:
            get_session(rows, session)
            return tuple(read_context(rows, session))

        return await self.log.storage.view(read)

    async def pending(self, session: str) -> tuple[AdmittedPrompt, ...]:
        """Returns the prompts that were admitted and not yet promoted, in the order of their admission.

        Raises:
            SessionNotFoundError: There is no such session.
        """

        def read(rows: Any) -> tuple[AdmittedPrompt, ...]:
            get_session(rows, session)
            return pending(rows, session)

        return await self.log.storage.view(read)

    async def history(self, session: str, *, after: int = -1, limit: int = 50) -> Page:
        """Returns the next public events behind a sequence; a first-generation session may have none.

        Raises:
            SessionNotFoundError: There is no such session.
            LogError: An event cannot be read.
            ValueError: The limit is not positive.
        """
        await self.get(session)
        return await self.log.history(session, after=after, limit=_checked(limit))

    @asynccontextmanager
    async def events(self, session: str, *, after: int = -1) -> AsyncIterator[AsyncIterator[Recorded]]:
        """Follows the public events of a session: first what is there behind a sequence, then what comes.

        Raises:
            SessionNotFoundError: There is no such session.
            LogRemovedError: The session was removed; from the iterator.
            LogError: An event cannot be read; from the iterator.
        """
        await self.get(session)
        async with self.log.tail(session, after=after) as events:
            yield events

    async def shell(self, session: str, command: str) -> None:
        """Runs a command in the person's place. Not there yet.

        Raises:
            OperationUnavailableError: Always.
        """
        raise OperationUnavailableError("shell", session=session)

    async def skill(self, session: str, name: str) -> None:
        """Invokes a skill in the person's place. Not there yet.

        Raises:
            OperationUnavailableError: Always.
        """
        raise OperationUnavailableError("skill", session=session)

    async def compact(self, session: str) -> None:
        """Makes a summary now. Not there yet.

        Raises:
            SessionNotFoundError: There is no such session.
            OperationUnavailableError: Always, else.
        """
        await self.get(session)
        raise OperationUnavailableError("compact", session=session)

    async def wait(self, session: str) -> None:
        """Returns when the session is idle. Not there yet.

        Raises:
            SessionNotFoundError: There is no such session.
            OperationUnavailableError: Always, else.
        """
        await self.get(session)
        raise OperationUnavailableError("wait", session=session)

    async def commit(self, session: str, work: Callable[[Writer], R]) -> R:
        """Runs work on one session in one transaction; a first-generation one gets its log before.

        Raises:
            SessionNotFoundError: There is no such session.
            Exception: Whatever the work raised; nothing was written.
        """
        at = self.now()

        def adopted(writer: Writer) -> R:
            get_session(writer.rows, session)
            adopt(writer, session, at=at)
            return work(writer)

        return await self.log.commit(adopted, aggregate=session)

    async def _record(self, session: str, fact: Callable[[int], SessionEvent]) -> Session:
        event = fact(self.now())

        def work(writer: Writer) -> Session:
            writer.append(event)
            return get_session(writer.rows, session)

        return await self.commit(session, work)

    async def _list(
        self, which: SessionFilter, limit: int, cursor: str | None, reverse: bool, archived: bool
    ) -> Listing[Session]:
        size = _checked(limit)
        return await self.log.storage.view(
            lambda rows: list_sessions(rows, which, limit=size, cursor=cursor, reverse=reverse, archived=archived)
        )


def _checked(limit: int) -> int:
    if limit < 1:
        raise ValueError("The limit must be positive.")
    return min(limit, LARGEST_PAGE)


def _with_archived(session: Session, at: int | None) -> Session:
    if (session.time.archived is None) == (at is None):
        return session
    return attrs.evolve(session, time=attrs.evolve(session.time, archived=at))


def _forked(source: Session, id: str, at: int, version: str) -> SessionCreated:
    return SessionCreated(
        session=id,
        at=at,
        project=source.project,
        directory=source.directory,
        title=f"{source.title} (fork)",
        slug=slug_of(id),
        version=version,
        agent=source.agent,
        model=source.model,
        workspace=source.workspace,
        permission=source.permission,
        metadata={"forked_from": source.id},
    )
