"""Makes the copies of a server's skills what its index lists. Fetches nothing that is not checked, or has not changed.

A skill is replaced whole or not at all: whatever fails, the copy that is there stays. Decides nothing about when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import attrs

from plugin_sdk.http import FetchError
from plugins_builtin.skills.copies import Copy, install, remove, tidy, write_checked
from plugins_builtin.skills.index import Index, Listed
from plugins_builtin.skills.problems import Problem
from plugins_builtin.skills.server import Server, TooLarge

SKILLS_AT_ONCE = 4
FILES_AT_ONCE = 8


@attrs.frozen(kw_only=True)
class Copies:
    """The copies as they are.

    Attributes:
        root: Where they are.
        found: Which there are, by name.
        now: The time in seconds, by the host's clock.
        machine_now: The same by which the disk dates files.
        oldest: How many seconds one without a version is as good as new.
    """

    root: Path
    found: Mapping[str, Copy]
    now: float
    machine_now: float
    oldest: float

    def is_current(self, listed: Listed) -> bool:
        """Whether the copy of a skill is what the index lists."""
        copy = self.found.get(listed.name)
        if copy is None or copy.listed != listed or copy.path != self.root / listed.name:
            return False
        return listed.version is not None or 0 <= self.now - copy.fetched < self.oldest


@attrs.frozen(kw_only=True)
class Refreshed:
    """What came of it: what was left out, and whether everything else is what the index lists."""

    problems: tuple[Problem, ...]
    is_complete: bool


async def refresh(server: Server, copies: Copies) -> Refreshed:
    """Fetches the index and every skill in it that changed, and removes what it no longer lists.

    Raises:
        FetchError: The index could not be fetched; nothing has changed.
        NotAnIndex: The index is not one; nothing has changed.
        OSError: What was fetched is there, but what is not listed any more could not be removed.
    """
    index = await server.index()
    failed: list[Problem] = []
    skills, files = anyio.CapacityLimiter(SKILLS_AT_ONCE), anyio.CapacityLimiter(FILES_AT_ONCE)

    async def renew(listed: Listed) -> None:
        async with skills:
            try:
                contents = await server.files(listed, files)
                await _in_thread(partial(install, copies.root, listed, contents, copies.now))
            except (FetchError, TooLarge, OSError) as error:
                failed.append(_failure(server, listed.name, error))

    async with anyio.create_task_group() as group:
        for listed in index.skills.values():
            if not copies.is_current(listed):
                group.start_soon(renew, listed)
    await _in_thread(partial(_finish, copies, index, is_complete=not failed))
    return Refreshed(problems=(*_refusals(server, index), *failed), is_complete=not failed)


def _failure(server: Server, name: str, error: Exception) -> Problem:
    if isinstance(error, FetchError):
        reason, remedy = error.problem, error.remedy
    elif isinstance(error, OSError):
        reason, remedy = f"its copy cannot be written ({error.strerror}).", "Make room for it, or its folder writable."
    else:
        reason, remedy = "its files are larger than 8 MiB together.", "Tell who publishes it."
    return Problem(f"The skill '{name}' of '{server.shown}' was not refreshed: {reason}", remedy)


def _refusals(server: Server, index: Index) -> tuple[Problem, ...]:
    return tuple(
        Problem(f"The skill '{each.name}' of '{server.shown}' was refused: {each.reason}.", "Tell who publishes it.")
        for each in index.refused
    )


def _finish(copies: Copies, index: Index, *, is_complete: bool) -> None:
    for name in copies.found.keys() - index.names:
        remove(copies.root, name)
    tidy(copies.root, copies.machine_now)
    if is_complete and copies.root.is_dir():
        write_checked(copies.root, copies.now)


async def _in_thread(work: Callable[[], None]) -> None:
    # Not abandoned when somebody stops waiting: what was begun on disk is finished or undone, which takes a moment.
    await anyio.to_thread.run_sync(work)
