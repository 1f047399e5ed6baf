"""One open Location, as plugins see it. Asks no plugin."""

from __future__ import annotations

from pathlib import Path

import attrs

from opencode_core.config import PluginSettings
from opencode_core.model.catalog import Catalog, CatalogDraft
from opencode_core.model.location import Location
from opencode_core.plugins.replay import Replayed
from opencode_core.plugins.scope import Scope, View


@attrs.define(eq=False, kw_only=True)
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

    def is_in(self, folder: Path | None) -> bool:
        """Whether a plugin that is confined to a folder serves this Location."""
        return folder is None or folder in self.folders
