"""Stores with something in them, to open, copy, check and measure."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from opencode_core.ids import Ids
from opencode_core.model.context import SnapshotEntry
from opencode_core.model.event.conversation import (
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextGrew,
    TextStarted,
)
from opencode_core.model.event.session import EpochStarted, PromptAdmitted, PromptPromoted, SessionCreated
from opencode_core.model.json import JSON
from opencode_core.model.prompt import Prompt
from opencode_core.model.session import ModelChoice
from opencode_core.model.storage import Key
from opencode_core.ports.storage import ReadTransaction, Storage, StorageFactory, Transaction
from opencode_core.storage.log import EventLog
from opencode_core.storage.schema import prepare
from plugins_builtin import storage_jsonfiles, storage_memory, storage_sqlite

R = TypeVar("R")

BACKENDS: Mapping[str, StorageFactory] = {
    "memory": storage_memory.open_store,
    "sqlite": storage_sqlite.open_store,
    "jsonfiles": storage_jsonfiles.open_store,
}

SECRET = "correct-horse-battery"
"""In everything that is said in a session made here."""


def url_of(kind: str, folder: Path, name: str = "store") -> str:
    """Return the URL of a store in a folder."""
    return "memory:" if kind == "memory" else f"{kind}://{folder}/{name}-{kind}"


@asynccontextmanager
async def a_store(kind: str = "memory", folder: Path = Path(), name: str = "store") -> AsyncIterator[Storage]:
    """Open a store as its backend does, without the kernel's own tables."""
    storage = await BACKENDS[kind](url_of(kind, folder, name))
    try:
        yield storage
    finally:
        await storage.aclose()


def a_log(storage: Storage) -> EventLog:
    """Return the log of a store, with a clock that counts."""
    clock = itertools.count(1_700_000_000_000)
    return EventLog(storage=storage, ids=Ids(milliseconds=lambda: next(clock)))


async def fill(storage: Storage, *sessions: str) -> None:
    """Make a store current, and put conversations into it that use nearly every table."""
    await prepare(storage)
    log = a_log(storage)
    for session in sessions or ("ses_1", "ses_2"):
        await log.append(*conversation(session))


def conversation(session: str) -> list[Any]:
    """Return a short conversation, in which one text and one call are still open."""
    prompt, answer = f"msg_{session}_a", f"msg_{session}_b"
    who: Any = {"session": session, "at": 1}
    part: Any = {**who, "message": answer}
    return [
        SessionCreated(**who, project="abc", directory="/home/me/x", title=SECRET),
        EpochStarted(**who, baseline=SECRET, snapshot={"core/date": SnapshotEntry(value=SECRET)}, since=0),
        PromptAdmitted(**who, message=prompt, prompt=Prompt(text=SECRET), parts=(f"prt_{session}_0",)),
        PromptPromoted(**who, message=prompt, admitted=2, admitted_at=1),
        PromptAdmitted(**who, message=f"msg_{session}_z", prompt=Prompt(text=SECRET), parts=(f"prt_{session}_9",)),
        StepStarted(**part, part=f"prt_{session}_1", model=ModelChoice(provider="demo", model="s"), parent=prompt),
        TextStarted(**part, part=f"prt_{session}_2"),
        TextEnded(**part, part=f"prt_{session}_2", text=SECRET),
        TextStarted(**part, part=f"prt_{session}_3"),
        TextGrew(**part, part=f"prt_{session}_3", offset=0, text=SECRET),
        SyntheticAdded(**who, message=f"msg_{session}_c", text=SECRET),
    ]


def first_generation(count: int = 2, *, start: int = 0) -> dict[tuple[str, Key], JSON]:
    """Return the documents of a store that the first generation wrote."""
    documents: dict[tuple[str, Key], JSON] = {("project", ("abc",)): {"id": "abc", "worktree": "/home/me/x"}}
    for number in range(start, start + count):
        session, message = f"ses_old{number:04}", f"msg_old{number:04}"
        time: JSON = {"created": 1_600_000_000_000 + number, "updated": 1_600_000_000_000 + number}
        documents["session", ("abc", session)] = {
            "id": session,
            "version": "0.3.1",
            "projectID": "abc",
            "directory": "/home/me/x",
            "title": SECRET,
            "time": time,
        }
        documents["message", (session, message)] = {"id": message, "sessionID": session, "role": "user", "time": time}
        documents["part", (message, f"prt_old{number:04}")] = {
            "id": f"prt_old{number:04}",
            "sessionID": session,
            "messageID": message,
            "type": "text",
            "text": SECRET,
        }
    return documents


async def put(storage: Storage, documents: Mapping[tuple[str, Key], JSON]) -> None:
    """Write documents, all at once."""

    def work(rows: Transaction) -> None:
        for (table, key), document in documents.items():
            rows.put(table, key, document)

    await storage.transact(work)


async def everything(storage: Storage) -> list[tuple[str, Key, str]]:
    """Return all that is in a store, documents as text, so that the order of their keys counts."""

    def work(rows: ReadTransaction) -> list[tuple[str, Key, str]]:
        return [(table, key, json.dumps(row)) for table in rows.tables() for key, row in rows.scan(table)]

    return await storage.view(work)


@attrs.define(eq=False)
class Watched:
    """A store that counts what is written, and runs something else instead when it is told to.

    Attributes:
        transactions: How many transactions were begun.
        instead: Asked before each transaction, with its number from 1 and its work; returns the work to do.
    """

    storage: Storage
    instead: Callable[[int, Callable[[Transaction], Any]], Callable[[Transaction], Any]] = lambda _, work: work
    transactions: int = 0

    async def transact(self, work: Callable[[Transaction], R]) -> R:
        self.transactions += 1
        result: R = await self.storage.transact(self.instead(self.transactions, work))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)
