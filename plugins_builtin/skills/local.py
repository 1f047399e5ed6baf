"""Finds the skills in folders of this machine, anew each time somebody asks, so that an edit needs no restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import attrs

from plugin_sdk import PluginScope, Skill
from plugin_sdk.threads import BoundedThreads
from plugins_builtin.skills.places import Folder
from plugins_builtin.skills.scanning import Known, scan


@attrs.define(eq=False, kw_only=True)
class LocalSkills:
    """The skills of several folders, which are scanned together: one thread for all is cheaper than one for each.

    Attributes:
        folders: The folders; what is later has priority.
        scope: Whose environment counts, and who is told what was left out.
        machine_time: The time by which the disk dates files; a host's own clock may stand still.
    """

    folders: tuple[Folder, ...]
    scope: PluginScope
    machine_time: Callable[[], float] = time.time
    _known: Known = attrs.field(init=False, factory=dict)
    _threads: BoundedThreads = attrs.field(init=False, factory=BoundedThreads)

    async def load(self) -> tuple[Skill, ...]:
        """Returns what is there now.

        Raises:
            OSError: That cannot be said now; also when the disk has not answered several times before.
        """
        work = partial(scan, self._wanted(), self._known, self.machine_time())
        scanned = await self._threads.run(work)
        self._known = scanned.known
        for each in scanned.problems:
            self.scope.warn(each.problem, each.remedy)
        return scanned.skills

    def _wanted(self) -> tuple[Folder, ...]:
        switch = self.scope.host.environ.get("OPENCODE_DISABLE_PROJECT_CONFIG", "")
        if switch.strip().lower() not in ("1", "true", "yes"):
            return self.folders
        return tuple(folder for folder in self.folders if not folder.holder)
