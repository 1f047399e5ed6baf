"""Reads instructions from addresses of the web, from copies where it can, and asks again when these are old.

Nothing goes on behind a boundary's back: an address is asked within the boundary that needs it, for as long as a bound
allows, and while there is a copy that is a short one; then the copy is used, and a later boundary asks again. So there
is no task that nobody waits for, a change is seen at the boundary that asked, and an address that does not answer
costs less and less often. Never waits longer than `PATIENCE`, and never raises for an address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

import anyio
import attrs

from plugin_sdk.http import Fetched, FetchError, without_secrets
from plugin_sdk.text import shown
from plugin_sdk.threads import BoundedThreads
from plugins_builtin.instructions.problems import Problem
from plugins_builtin.instructions.reading import as_text
from plugins_builtin.instructions.shelf import Copy, Shelf
from plugins_builtin.instructions.telling import Instruction

PATIENCE = 4.0
"""How many seconds a boundary waits for an address that there is no copy of."""

SHORT_PATIENCE = 0.5
"""How many it waits while there is a copy; twice as long after each time that was not enough."""

PAUSE = 5.0
"""How many seconds pass before an address that failed is asked again; twice as many after each failure."""

_GONE = (404, 410)


class Fetch(Protocol):
    """Fetches an address, as `plugin_sdk.http.fetch` does."""

    def __call__(self, url: str, /, *, limit: int, timeout: float, headers: dict[str, str]) -> Awaitable[Fetched]:
        """Returns what the address holds."""
        ...


@attrs.define(eq=False, kw_only=True)
class Remotes:
    """The addresses of one Location.

    Attributes:
        urls: The addresses, in order.
        shelf: Where copies are kept.
        refresh_seconds: How old a copy may become before its address is asked again.
        now: Tells the time.
        warn: Tells people what is odd.
        fetch: Fetches.
    """

    urls: Sequence[str]
    shelf: Shelf
    refresh_seconds: float
    now: Callable[[], datetime]
    warn: Callable[[Problem], None]
    fetch: Fetch
    _states: dict[str, _State] = attrs.field(init=False)
    _threads: BoundedThreads = attrs.field(init=False, factory=BoundedThreads)
    _turn: anyio.Lock = attrs.field(init=False, factory=anyio.Lock)

    def __attrs_post_init__(self) -> None:
        self._states = {url: _State(url) for url in self.urls}

    async def current(self) -> tuple[Instruction, ...]:
        """Returns what the addresses hold, as far as it is known."""
        if self._due():
            async with self._turn:  # two sessions at one time ask once
                await self._refresh()
        copies = [(state.url, state.copy) for state in self._states.values()]
        return tuple(Instruction(origin=without_secrets(url), text=copy.text) for url, copy in copies if copy)

    def _due(self) -> list[_State]:
        now = self.now()
        return [state for state in self._states.values() if state.is_due(now)]

    async def _refresh(self) -> None:
        # Another process may have asked meanwhile, or an earlier one.
        await self._threads.run(partial(self._take_from_shelf, self._due()))
        answers: dict[str, Copy | None] = {}
        async with anyio.create_task_group() as group:
            for state in self._due():
                group.start_soon(self._ask, state, answers)
        if answers and not await self._threads.run(partial(self._put_on_shelf, answers)):
            folder = shown(self.shelf.folder)
            text = f"Copies of instructions cannot be kept in '{folder}'; they are fetched by every process."
            self.warn(Problem(text=text, remedy="Check the permissions of that folder, and the space that is left."))

    def _take_from_shelf(self, states: Sequence[_State]) -> None:
        for state in states:
            copy = self.shelf.get(state.url)
            if copy is not None and (state.copy is None or copy.fetched > state.copy.fetched):
                state.has(copy, self.refresh_seconds)

    async def _ask(self, state: _State, answers: dict[str, Copy | None]) -> None:
        """Asks an address, and notes its answer: what it holds, or that it is gone; nothing when it did not say."""
        headers = {"if-none-match": state.etag} if state.etag else {}
        try:
            fetched = await self.fetch(state.url, limit=self.shelf.limit, timeout=state.patience, headers=headers)
            answers[state.url] = copy = self._copy(state, fetched)
            state.has(copy, self.refresh_seconds)
            state.is_warned = False
        except FetchError as error:
            if error.status in _GONE:
                answers[state.url] = None
                state.is_gone(self.now(), self.refresh_seconds)
            else:
                state.failed(self.now(), self.refresh_seconds, named_version=bool(headers))
            self._warn(state, error)

    def _copy(self, state: _State, fetched: Fetched) -> Copy:
        if fetched.status == 304 and state.copy is not None:
            return attrs.evolve(state.copy, fetched=self.now())
        text = as_text(fetched.body)
        if text is None or fetched.status == 304:
            raise FetchError(state.url, "what it holds is not UTF-8 text", "Correct the address, or what it holds.")
        return Copy(text=text, etag=fetched.etag, fetched=self.now())

    def _warn(self, state: _State, error: FetchError) -> None:
        """Says once what fails, and again only when it has worked in between."""
        if not state.is_warned:
            state.is_warned = True
            what = "are left out" if state.copy is None else "are only as new as the last copy of them"
            self.warn(Problem(text=f"Instructions {what}: {error.problem}", remedy=error.remedy))

    def _put_on_shelf(self, answers: Mapping[str, Copy | None]) -> bool:
        """Keeps what addresses answered; tells whether it could."""
        try:
            for url, copy in answers.items():
                if copy is None:
                    self.shelf.drop(url)
                else:
                    self.shelf.put(url, copy)
        except OSError:
            return False
        return True


@attrs.define(eq=False)
class _State:
    """What is known of one address: its copy, when it was last asked, and how long it is then left alone."""

    url: str
    copy: Copy | None = None
    _asked: datetime | None = None
    _pause: float = 0.0
    _failures: int = 0
    _asks_for_all: bool = False
    is_warned: bool = False

    @property
    def etag(self) -> str:
        """The version that the address is asked to compare with; empty to ask for what it holds in any case."""
        return "" if self.copy is None or self._asks_for_all else self.copy.etag

    @property
    def patience(self) -> float:
        return PATIENCE if self.copy is None else min(PATIENCE, SHORT_PATIENCE * _doubled(self._failures))

    def is_due(self, now: datetime) -> bool:
        # A clock that was set back must not make anything last longer.
        return self._asked is None or not 0 <= (now - self._asked).total_seconds() < self._pause

    def has(self, copy: Copy, refresh_seconds: float) -> None:
        self.copy, self._asked, self._pause, self._failures = copy, copy.fetched, refresh_seconds, 0
        self._asks_for_all = False

    def is_gone(self, now: datetime, refresh_seconds: float) -> None:
        self.copy, self._asked, self._pause, self._failures = None, now, refresh_seconds, 0

    def failed(self, now: datetime, refresh_seconds: float, *, named_version: bool) -> None:
        self._asks_for_all = named_version  # it may be the name that the server, or something before it, stumbles at
        self._asked, self._pause = now, min(refresh_seconds, PAUSE * _doubled(self._failures))
        self._failures += 1


def _doubled(times: int) -> float:
    return 2.0 ** min(times, 16)
