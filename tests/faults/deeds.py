"""What the children do, by name. Tests nothing itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import anyio

from opencode_core.errors import StorageUnavailableError
from opencode_core.session.store import SessionStore
from tests.faults import misfortunes
from tests.faults.ledger import say, say_recorded
from tests.faults.stores import open_url, opened, sessions_in
from tests.faults.work import HERE, SHARED, Task, a_word, remove

TASKS = 4


def import_everything() -> None:
    """Imports what a store would import when it is opened."""
    for name in (
        "plugins_builtin.storage_jsonfiles.opening",
        "plugins_builtin.storage_postgres.opening",
        "plugins_builtin.storage_sqlite.opening",
        "plugins_builtin.storage_sqlite.database",
        "trio",
        "anyio._backends._asyncio",
        "anyio._backends._trio",
    ):
        importlib.import_module(name)


def live(url: str, seed: int, shared: str, steps: int, is_large: bool, is_patient: bool) -> None:
    """Opens a store, does so many steps of mixed work in several tasks, and closes it; it says where it is.

    Args:
        url: The store.
        seed: Decides what is done.
        shared: A session that all tasks work on; one that others shared before is removed.
        steps: How much each task does.
        is_large: Whether all texts are large.
        is_patient: Whether a server that cannot be reached is waited for.
    """
    run = partial(_live, url, Random(seed), shared, steps, is_large, is_patient)
    anyio.run(run, backend=("asyncio", "trio")[seed % 2])


async def _live(url: str, random: Random, shared: str, steps: int, is_large: bool, is_patient: bool) -> None:
    say("opening")
    storage = await open_url(url)
    say("opened")
    sessions = sessions_in(storage)
    mine = await _patiently(lambda: _found(sessions, shared), is_patient)
    async with anyio.create_task_group() as group:
        for number in range(TASKS):
            task = Task(sessions, Random(random.random()), mine[number::TASKS], shared, is_large)
            group.start_soon(_work, task, steps, is_patient)
    say("closing")
    await storage.aclose()
    say("closed")


async def _found(sessions: SessionStore, shared: str) -> list[str]:
    await sessions.create(id=shared, **HERE)
    found = [each.id for each in (await sessions.list()).items if each.id != shared]
    for old in [each for each in found if each.startswith(SHARED)]:
        found.remove(old)
        await remove(sessions, old)
    return found


async def _work(task: Task, steps: int, is_patient: bool) -> None:
    for _ in range(steps):
        await _patiently(task.step, is_patient)


async def _patiently(step: Callable[[], Any], is_patient: bool) -> Any:
    while True:
        try:
            return await step()
        except StorageUnavailableError as error:
            if not is_patient:
                raise
            say("failed", error.outcome_unknown)
        await anyio.sleep(0.02)


def append(url: str, session: str, count: int, name: str) -> None:
    """Appends so many events to a session, acknowledges each, and closes the store."""
    anyio.run(_append, url, session, count, name)


async def _append(url: str, session: str, count: int, name: str) -> None:
    async with opened(url) as sessions:
        for number in range(count):
            say_recorded(await sessions.log.append(a_word(sessions, session, f"{name} {number}")))


DEEDS: dict[str, Callable[..., None]] = {
    "append": append,
    "live": live,
    "fill_a_disk": misfortunes.fill_a_disk,
    "write_where_one_may_not": misfortunes.write_where_one_may_not,
    "lock_a_database": misfortunes.lock_a_database,
    "lock_a_file": misfortunes.lock_a_file,
}
