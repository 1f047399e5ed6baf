"""Observes what a view contributes, and reports each fault to the plugin that it belongs to. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from opencode_core.context.compose import compose
from opencode_core.context.observe import LoadFault, observe
from opencode_core.errors import PluginError, SourceFaultError
from opencode_core.model.context import Boundary, Observation
from opencode_core.model.location import Location
from opencode_core.plugins.diagnostics import place_of, sentence
from opencode_core.plugins.scope import View

_STAYS = "What the model was told of it stays in effect."


@attrs.frozen(eq=False)
class Observer:
    """Observes for one host.

    Attributes:
        report: Keeps a fault as a diagnostic of a plugin, which is named first.
        failed: Returns the plugins that could not be loaded in a Location.
    """

    report: Callable[[str, PluginError], None]
    failed: Callable[[Location], frozenset[str]]

    async def observe(self, view: View, boundary: Boundary) -> Observation:
        """Composes what is contributed, and observes it once.

        Raises:
            ContextError: It cannot be composed.
        """
        observed = await observe(await compose(view), boundary, on_fault=self._on_load_fault)
        return attrs.evolve(observed, failed=self.failed(boundary.location))

    def on_source_fault(self, fault: SourceFaultError, owner: str) -> None:
        """Reports a source that cannot be rendered or encoded."""
        self._report(owner, f"{fault.problem} It is of the plugin '{owner}'.", fault.remedy, fault, fault.__cause__)

    def _on_load_fault(self, fault: LoadFault) -> None:
        what = f"The context source '{fault.key}' of the plugin '{fault.owner}' could not be loaded: {fault.reason}"
        remedy = "Fix its 'load', or block the plugin."
        self._report(fault.owner, sentence(what), remedy, fault.error, fault.error)

    def _report(
        self, owner: str, problem: str, remedy: str, error: BaseException | None, cause: BaseException | None
    ) -> None:
        place = None if cause is None else place_of(cause)
        said = PluginError(problem, f"{_STAYS} {remedy}", plugin=owner, place=place)
        said.__cause__ = error  # so that its traceback is kept, as text
        self.report(owner, said)
