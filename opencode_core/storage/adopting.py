"""Puts sessions of the first generation into the lists, so that they are found. Changes nothing that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from opencode_core.errors import MessageDecodeError
from opencode_core.model.codec import decode_session
from opencode_core.model.json import JSON
from opencode_core.model.rows import SESSION_LISTS, SESSION_PLACES, SESSIONS, list_keys
from opencode_core.model.session import Session
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, Transaction

PAGE = 200
"""Sessions that one transaction adopts."""


@attrs.frozen(kw_only=True)
class Adopted:
    """What an adoption did.

    Attributes:
        sessions: How many sessions were put into the lists.
        unreadable: Which ones could not be, one sentence each.
    """

    sessions: int = 0
    unreadable: tuple[str, ...] = ()


@attrs.frozen
class _Batch:
    missing: Sequence[Key]
    unreadable: Sequence[str]
    last: Key | None


async def adopt(storage: Storage, *, may_go_on: Callable[[ReadTransaction], bool] = lambda _: True) -> Adopted:
    """Puts every session that is in no list into its lists.

    It can be interrupted anywhere and begun again, and two may run at once: each transaction looks again at what it
    is about to write.

    Args:
        storage: The store.
        may_go_on: Asked in each transaction; False ends it without writing more.

    Raises:
        StorageError: The store failed.
    """
    sessions, unreadable = 0, list[str]()
    after: Key | None = None
    while True:
        batch = await storage.view(_looker(after))
        unreadable += batch.unreadable
        if batch.missing:
            added = await storage.transact(_placer(batch.missing, may_go_on))
            if added is None:
                break
            sessions += added
        if batch.last is None:
            break
        after = batch.last
    return Adopted(sessions=sessions, unreadable=tuple(unreadable))


def _looker(after: Key | None) -> Callable[[ReadTransaction], _Batch]:
    def look(rows: ReadTransaction) -> _Batch:
        found = list(rows.scan(SESSIONS, after=after, limit=PAGE))
        missing, unreadable = list[Key](), list[str]()
        for key, document in found:
            if is_placed(rows, key):
                continue
            session = session_at(key, document)
            if isinstance(session, str):
                unreadable.append(session)
            else:
                missing.append(key)
        return _Batch(missing, unreadable, found[-1][0] if len(found) == PAGE else None)

    return look


def _placer(keys: Sequence[Key], may_go_on: Callable[[ReadTransaction], bool]) -> Callable[[Transaction], int | None]:
    def place(rows: Transaction) -> int | None:
        if not may_go_on(rows):
            return None
        added = 0
        for key in keys:
            session = session_at(key, rows.get(SESSIONS, key))
            if is_placed(rows, key) or isinstance(session, str):  # somebody else was here meanwhile
                continue
            created = session.time.created
            rows.put(SESSION_PLACES, (session.id,), {"project": session.project, "created": created})
            for listed in list_keys(session.id, session.project, session.directory, session.parent, created):
                rows.put(SESSION_LISTS, listed, True)
            added += 1
        return added

    return place


def is_placed(rows: ReadTransaction, key: Key) -> bool:
    """Whether the session under a key of its table is one that can be found."""
    return rows.get(SESSION_PLACES, key[1:]) is not None if len(key) == 2 else False


def session_at(key: Key, document: JSON) -> Session | str:
    """Returns the session under a key of its table, or a sentence that says why it is none."""
    name = "/".join(map(str, key))
    if len(key) != 2 or not all(isinstance(part, str) for part in key):
        return f"The session document '{name}' is not under a project and an id."
    try:
        session = decode_session(document, session=str(key[1]))
    except MessageDecodeError as error:
        return error.problem
    if (session.project, session.id) != key:
        return f"The session document '{name}' is about another session, or another project."
    return session
