"""Reloads the plugins whose files changed, and looks for those that came and went. Watches nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import attrs

from opencode_core.errors import PluginError, ScopeClosedError
from opencode_core.plugins.boarding import Boarding
from opencode_core.plugins.diagnostics import sentence, words
from opencode_core.plugins.directory import PluginDirectory
from opencode_core.plugins.loader import PLUGIN_FOLDERS
from opencode_core.plugins.record import Record


@attrs.define(eq=False, repr=False, kw_only=True)
class HotReload:
    """What a watched host does when files change."""

    directory: PluginDirectory
    boarding: Boarding

    async def on_files(self, changed: frozenset[Path]) -> None:
        """Reloads what changed; a fault leaves the old generation answering."""
        await self._quietly(partial(self._reload_all, changed))

    def on_fault(self, error: Exception) -> None:
        """Says that the operating system does not watch, which leaves everything else as it is."""
        problem, _remedy = words(error)
        self.directory.warn(
            "",
            sentence(f"Some plugins are not reloaded by themselves, because their files cannot be watched: {problem}"),
            "Run `opencode-core plugins reload` after an edit, or let the system watch more files.",
        )

    async def _reload_all(self, changed: frozenset[Path]) -> None:
        before = {entry.id: entry.last_number for entry in self.directory.entries()}
        for entry in self.directory.entries():
            # A plugin that shares a package with another was reloaded with it.
            if _is_touched(entry, changed) and entry.last_number == before[entry.id]:
                await self._quietly(partial(self.directory.reload, entry.id), entry.name)
        if any(self._is_news(path) for path in changed):
            await self._quietly(self.boarding.refresh)

    async def _quietly(self, change: Callable[[], Awaitable[object]], name: str = "") -> None:
        """Lets what runs go on: the fault of a plugin was published already, and any other is kept as a warning."""
        try:
            await change()
        except (PluginError, ScopeClosedError):
            return
        except Exception as error:  # whatever it is, the host has other plugins and goes on
            problem, remedy = words(error)
            self.directory.warn(name, sentence(problem), remedy or "Save the file again, or restart the host.")

    def _is_news(self, path: Path) -> bool:
        """Whether a file in a plugin folder is new or gone, rather than a known plugin's."""
        known = (each for entry in self.directory.entries() for each in entry.candidate.watched)
        is_known = any(path.is_relative_to(each) and each.exists() for each in known)
        return not is_known and any(path.is_relative_to(folder) for folder in self._plugin_folders())

    def watched(self) -> frozenset[Path]:
        """Returns the files and folders whose change means new code."""
        paths = {path for candidate in self.directory.candidates() for path in candidate.watched}
        return frozenset(paths | self._plugin_folders())

    def _plugin_folders(self) -> frozenset[Path]:
        """Returns where projects may have plugins, also while there is no such folder."""
        return frozenset(
            folder / ".opencode" / name
            for place in self.directory.places
            for folder in place.folders
            for name in PLUGIN_FOLDERS
        )


def _is_touched(entry: Record, changed: frozenset[Path]) -> bool:
    """Whether a plugin is to be reloaded; when its files left a project, that is looked at again instead."""
    candidate = entry.candidate
    if entry.state == "blocked" or (candidate.folder and not all(path.exists() for path in candidate.watched)):
        return False
    return any(path.is_relative_to(watched) for watched in candidate.watched for path in changed)
