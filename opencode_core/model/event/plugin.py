"""What happens to plugins and to what they contribute. Live-only."""

from __future__ import annotations

import attrs

from opencode_core.model.event.base import Event


@attrs.frozen(kw_only=True)
class PluginEvent(Event):
    """Something happened to one plugin.

    Attributes:
        plugin: The plugin's name.
        generation: Which generation of its code is in effect now; 0 when none is.
    """

    plugin: str
    generation: int


@attrs.frozen(kw_only=True)
class PluginAdded(PluginEvent):
    """A plugin was loaded, and its contributions can be read."""


@attrs.frozen(kw_only=True)
class PluginReloaded(PluginEvent):
    """A new generation of a plugin took the place of the old one."""


@attrs.frozen(kw_only=True)
class PluginRemoved(PluginEvent):
    """A plugin is gone, with all its contributions."""


@attrs.frozen(kw_only=True)
class PluginFailed(PluginEvent):
    """A plugin could not be loaded or reloaded, or one of its hooks raised; the diagnostic says why."""

    problem: str
    remedy: str
    hook: str | None = None
    scope: str = ""
    file: str | None = None
    line: int | None = None


@attrs.frozen(kw_only=True)
class CatalogUpdated(Event):
    """The catalog of a Location changed, and the new one can be read."""

    directory: str
