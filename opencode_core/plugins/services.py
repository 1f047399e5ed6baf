"""What a host does for plugins beyond holding what they contribute. Decides nothing about them."""

from __future__ import annotations

import attrs

from opencode_core.model.skill import FoundSkills
from opencode_core.plugins.directory import PluginDirectory
from opencode_core.plugins.scope import View
from opencode_core.plugins.skills import find_skills
from opencode_core.ports.scope import HostFacts


@attrs.frozen(eq=False)
class HostServices:
    """The services of one host."""

    facts: HostFacts
    _directory: PluginDirectory

    def warn(self, plugin: str, problem: str, remedy: str) -> None:
        """Tells people what is odd about a plugin, once."""
        self._directory.warn(plugin, problem, remedy)

    async def skills(self, view: View) -> FoundSkills:
        """Returns every skill in a view, by name in order; a source that fails is a diagnostic of its plugin."""
        return await find_skills(view, self._directory.report)
