"""Offers the skills that a web server lists, from copies on this machine. Starts no task that nobody waits for.

Copies are used as they are until they are an hour old, or what is configured. Then whoever asks for skills next asks
the server too, for a moment: when that takes longer, the copies are used as they are, and it is asked again later. So a
boundary is held up rarely and never for long, and no request outlives the call that made it.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import attrs

from plugin_sdk import PluginScope, Skill
from plugin_sdk.http import FetchError, fetch
from plugin_sdk.text import shown
from plugin_sdk.threads import BoundedThreads
from plugins_builtin.skills.copies import LOOKS, Copy, find_copies, read_checked
from plugins_builtin.skills.index import NotAnIndex
from plugins_builtin.skills.places import Address
from plugins_builtin.skills.problems import Problem
from plugins_builtin.skills.refreshing import Copies, refresh
from plugins_builtin.skills.scanning import File, Known, Scanned, read_files
from plugins_builtin.skills.server import Fetch, Server

PATIENCE = 2.0
"""How many seconds the server is waited for when there are copies."""
FIRST_PATIENCE = 4.0
"""How many when there are none: less than a boundary waits for a source."""
AFTER_FAILURE = 60.0
"""After how many seconds a server that failed is asked again; twice as many each time it fails again."""


@attrs.frozen(kw_only=True)
class _Kept:
    copies: Mapping[str, Copy]
    checked: float | None
    scanned: Scanned


@attrs.define(eq=False, kw_only=True)
class RemoteSkills:
    """The skills of one server.

    Attributes:
        address: Where its folder of skills is.
        scope: Whose clock and data folder are used, and who is told what went wrong.
        refresh_seconds: How old copies may be before the server is asked again.
        fetch: Fetches.
        pause: Waits between two attempts.
        chance: Returns a number from 0 to 1, so that clients that failed together try again apart.
        machine_time: The time by which the disk dates files; a host's own clock may stand still.
        patience: How many seconds the server is waited for when there are copies.
        first_patience: How many when there are none.
    """

    address: Address
    scope: PluginScope
    refresh_seconds: float
    fetch: Fetch = fetch
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random
    machine_time: Callable[[], float] = time.time
    patience: float = PATIENCE
    first_patience: float = FIRST_PATIENCE
    _known: Known = attrs.field(init=False, factory=dict)
    _threads: BoundedThreads = attrs.field(init=False, factory=BoundedThreads)
    _is_refreshing: bool = attrs.field(init=False, default=False)
    _failures: int = attrs.field(init=False, default=0)
    _not_before: float = attrs.field(init=False, default=0.0)

    @property
    def root(self) -> Path:
        """The folder of the copies."""
        digest = hashlib.sha256(self.address.url.encode()).hexdigest()[:32]
        return self.scope.host.data_dir / "skills" / digest

    async def load(self) -> tuple[Skill, ...]:
        """Returns the skills in the copies, after asking the server if it is time to.

        Raises:
            OSError: The copies cannot be read now; also when the disk has not answered several times before.
        """
        kept = await self._read()
        if self._is_due(kept):
            self._is_refreshing = True  # so that others who ask meanwhile do not wait as well
            try:
                self._tell(await self._refresh(kept))
            finally:
                self._is_refreshing = False
            kept = await self._read()
        self._tell(kept.scanned.problems)
        return kept.scanned.skills

    def _is_due(self, kept: _Kept) -> bool:
        now = self._now()
        # A clock that was set back must not make either last for years.
        is_fresh = kept.checked is not None and 0 <= now - kept.checked < self.refresh_seconds
        is_left_alone = 0 < self._not_before - now <= self.refresh_seconds
        return not is_fresh and not is_left_alone and not self._is_refreshing

    async def _refresh(self, kept: _Kept) -> tuple[Problem, ...]:
        patience = self.patience if kept.copies else self.first_patience
        problem, remedy = f"it took longer than {patience:g} s.", "It is asked again later; until then copies are used."
        with anyio.move_on_after(patience):
            try:
                refreshed = await refresh(self._server, self._copies(kept))
            except FetchError as error:
                problem, remedy = error.problem, error.remedy
            except NotAnIndex as error:
                problem, remedy = f"its index {error}.", "Tell who publishes it."
            except OSError as error:
                problem, remedy = f"'{shown(self.root)}' cannot be written ({error.strerror}).", "Make it writable."
            else:
                self._settle(is_complete=refreshed.is_complete)
                return refreshed.problems
        self._settle(is_complete=False)
        return (Problem(f"The skills of '{self._server.shown}' were not refreshed: {problem}", remedy),)

    @property
    def _server(self) -> Server:
        return Server(url=self.address.url, fetch=self.fetch, pause=self.pause, chance=self.chance)

    def _copies(self, kept: _Kept) -> Copies:
        return Copies(
            root=self.root,
            found=kept.copies,
            now=self._now(),
            machine_now=self.machine_time(),
            oldest=self.refresh_seconds,
        )

    def _settle(self, *, is_complete: bool) -> None:
        self._failures = 0 if is_complete else min(self._failures + 1, 16)
        wait = self.refresh_seconds if is_complete else AFTER_FAILURE * 2 ** (self._failures - 1)
        self._not_before = self._now() + min(wait, self.refresh_seconds)

    async def _read(self) -> _Kept:
        work = partial(_read_kept, self.root, self._known, self.machine_time())
        kept = await self._threads.run(work)
        self._known = kept.scanned.known
        return kept

    def _tell(self, problems: tuple[Problem, ...]) -> None:
        for each in problems:
            self.scope.warn(each.problem, each.remedy)

    def _now(self) -> float:
        return self.scope.host.now().timestamp()


def _read_kept(root: Path, known: Known, now: float, looks: int = LOOKS) -> _Kept:
    copies = find_copies(root)
    scanned = read_files(map(_entry, copies.values()), known, now)
    if len(scanned.skills) + len(scanned.problems) < len(copies) and looks > 1:
        return _read_kept(root, known, now, looks - 1)  # one was replaced between the look and the read
    return _Kept(copies=copies, checked=read_checked(root), scanned=scanned)


def _entry(copy: Copy) -> File:
    entry = copy.listed.entry
    real = os.path.join(os.path.realpath(copy.path), entry)
    return File(path=real, real=real, name=copy.listed.name, is_folder=entry == "SKILL.md")
