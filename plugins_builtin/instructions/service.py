"""Offers all instructions of a Location as one context source. Knows neither files nor the web itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from plugin_sdk import ABSENT, UNAVAILABLE, Absent, Boundary, ContextSource, PluginScope, Unavailable
from plugin_sdk.threads import BoundedThreads
from plugins_builtin.instructions import telling
from plugins_builtin.instructions.configured import is_address
from plugins_builtin.instructions.local import LocalFiles
from plugins_builtin.instructions.options import InstructionsOptions
from plugins_builtin.instructions.problems import Problem
from plugins_builtin.instructions.reading import Reader
from plugins_builtin.instructions.telling import Instructions

if TYPE_CHECKING:
    from plugins_builtin.instructions.remote import Remotes

_DEADLINE = 10.0
"""How many seconds one observation may take; it bounds itself well below that, unless a disk does not answer."""


@attrs.define(eq=False, kw_only=True)
class InstructionService:
    """The instructions of one Location.

    Attributes:
        scope: The plugin's part of the Location.
        local: Those in files.
        remotes: Those from addresses; None when none is configured.
    """

    scope: PluginScope
    local: LocalFiles
    remotes: Remotes | None = None
    _threads: BoundedThreads = attrs.field(init=False, factory=BoundedThreads)

    @classmethod
    def of(
        cls, options: InstructionsOptions, scope: PluginScope, *, reader: Reader | None = None
    ) -> InstructionService:
        """Makes the service.

        Args:
            options: What is configured.
            scope: The plugin's part of the Location.
            reader: Reads files; None for one with the configured limit.
        """
        paths = [each for each in options.files if not is_address(each)]
        urls = [each for each in options.files if is_address(each)]
        local = LocalFiles(entries=paths, host=scope.host, reader=reader or Reader(limit=options.file_limit))
        service = cls(scope=scope, local=local)
        if urls:
            service.remotes = service._remotes(options, urls)
        return service

    def source(self) -> ContextSource[Instructions]:
        """Returns the source."""
        return ContextSource(
            key="core/instructions",
            load=self.load,
            baseline=telling.baseline,
            update=telling.update,
            removed=telling.removed,
            encode=telling.encode,
            decode=telling.decode,
            deadline=_DEADLINE,
        )

    async def load(self, boundary: Boundary) -> Instructions | Unavailable | Absent:
        """Observes what applies at a boundary.

        Raises:
            TimeoutError: The disk has not answered several boundaries before this one; it was not asked again.
        """
        observed = await self._threads.run(partial(self.local.observe, boundary))
        for problem in observed.problems:
            self._warn(problem)
        if observed.parts is None:
            return UNAVAILABLE
        remote = await self.remotes.current() if self.remotes else ()
        return Instructions(parts=(*observed.parts, *remote)) if observed.parts or remote else ABSENT

    def _warn(self, problem: Problem) -> None:
        self.scope.warn(problem.text, problem.remedy)

    def _remotes(self, options: InstructionsOptions, urls: list[str]) -> Remotes:
        from plugin_sdk.http import fetch
        from plugins_builtin.instructions.remote import Remotes
        from plugins_builtin.instructions.shelf import Shelf

        host = self.scope.host
        return Remotes(
            urls=urls,
            shelf=Shelf(folder=host.data_dir / "instructions", limit=options.remote_limit),
            refresh_seconds=options.refresh_seconds,
            now=host.now,
            warn=self._warn,
            fetch=fetch,
        )
