"""Fetches an index and the files of skills from a web server, patiently and within bounds. Writes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import quote

import anyio
import attrs

from plugin_sdk.http import Fetched, FetchError, without_secrets
from plugins_builtin.skills.index import Index, Listed, parse_index

LARGEST = 1_048_576
LARGEST_SKILL = 8 * LARGEST
LONGEST_REQUEST = 10.0
RETRIES = 2
FIRST_PAUSE = 0.2

_MAY_PASS = (408, 425, 429)


class TooLarge(Exception):
    """The files of a skill are too large together."""


class Fetch(Protocol):
    """Fetches an address within bounds, as `plugin_sdk.http.fetch` does."""

    async def __call__(
        self,
        url: str,
        *,
        limit: int,
        timeout: float,  # noqa: ASYNC109 - as the function that is usually used has it
        same_origin: bool,
    ) -> Fetched:
        """Returns what the server answered.

        Raises:
            FetchError: It did not, or something else than it should.
        """
        ...


@attrs.frozen(kw_only=True, eq=False)
class Server:
    """Somebody to fetch skills from.

    Attributes:
        url: The address of its folder of skills; ends with a slash.
        fetch: Fetches.
        pause: Waits between two attempts.
        chance: Returns a number from 0 to 1, so that clients that failed together try again apart.
    """

    url: str = attrs.field(repr=False)
    fetch: Fetch
    pause: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]

    @property
    def shown(self) -> str:
        """The address as people may see it."""
        return without_secrets(self.url)

    async def index(self) -> Index:
        """Fetches the index.

        Raises:
            FetchError: It could not be fetched.
            NotAnIndex: It is not one.
        """
        return parse_index(await self._get("index.json"))

    async def files(self, listed: Listed, limit: anyio.CapacityLimiter) -> Mapping[str, bytes]:
        """Fetches every file of a skill, or none.

        Args:
            listed: The skill.
            limit: How many files are fetched at a time, of this skill and others.

        Raises:
            FetchError: One could not be fetched.
            TooLarge: They are too large together.
        """
        contents: dict[str, bytes] = {}
        failures: list[Exception] = []

        async def get(path: str) -> None:
            try:
                async with limit:
                    contents[path] = await self._get(f"{listed.name}/{path}")
                if sum(map(len, contents.values())) > LARGEST_SKILL:
                    raise TooLarge
            except (FetchError, TooLarge) as error:
                failures.append(error)
                group.cancel_scope.cancel()  # without this one, the others are of no use

        async with anyio.create_task_group() as group:
            for path in listed.files:
                group.start_soon(get, path)
        if failures:
            raise failures[0]
        return contents

    async def _get(self, path: str) -> bytes:
        url, attempt = self.url + quote(path), 0
        while True:
            try:
                return (await self.fetch(url, limit=LARGEST, timeout=LONGEST_REQUEST, same_origin=True)).body
            except FetchError as error:
                if attempt == RETRIES or not _may_pass(error):
                    raise
            await self.pause(FIRST_PAUSE * 2**attempt * (0.5 + self.chance()))
            attempt += 1


def _may_pass(error: FetchError) -> bool:
    return error.status is None or error.status >= 500 or error.status in _MAY_PASS
