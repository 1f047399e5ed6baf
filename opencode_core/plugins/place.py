"""One open Location, as plugins see it. Asks no plugin."""

from __future__ import annotations

from pathlib import Path

import attrs

from opencode_core.config import PluginSettings
from opencode_core.model.catalog import Catalog, CatalogDraft
from opencode_core.model.location import Location
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.replay import Replayed
from opencode_core.plugins.scope import Scope, View


@attrs.define(eq=False, repr=False, kw_only=True)
class Place:
    """An open Location.

    Attributes:
        location: Which one.
        scope: What is registered in it.
        catalog: Its providers and models, replayed through every plugin.
        settings: What the person and the trusted folders of the project say about plugins.
        folders: The project folders that may hold plugins and configuration, outermost first.
    """

    location: Location
    scope: Scope
    catalog: Replayed[CatalogDraft, Catalog]
    settings: PluginSettings
    folders: tuple[Path, ...] = ()

    def read(self) -> View:
        """Returns everything visible from this Location now."""
        return self.scope.read()

    def open_session(self, id: str) -> Scope:
        """Opens the scope of a session in this Location: it sees all that is here, and ends no later than it."""
        return self.scope.open_child("session", id)

    def is_in(self, folder: Path | None) -> bool:
        """Whether a plugin that is confined to a folder belongs to this Location; one that is not belongs to all."""
        return folder is None or folder in self.folders

    def admits(self, candidate: Candidate) -> bool:
        """Whether a plugin serves this Location: it belongs here, and the settings here do not keep it out.

        ``plugin_allow`` restricts what does not come with the kernel; builtins are only kept out by ``plugin_block``.
        """
        return self.is_in(candidate.folder) and not is_blocked(candidate, self.settings)


def is_blocked(candidate: Candidate, settings: PluginSettings) -> bool:
    """Whether settings keep a plugin out: by ``plugin_block``, or, unless it is a builtin, by ``plugin_allow``."""
    allow = settings.allow
    is_left_out = allow is not None and candidate.name not in allow and not candidate.builtin
    return is_left_out or candidate.name in settings.block
