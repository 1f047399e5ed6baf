"""What a host knows of one plugin: where it came from, what it became, what went wrong. Changes no registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from opencode_core.model.json import JSON
from opencode_core.model.plugin import Diagnostic, PluginState, PluginStatus
from opencode_core.plugins.candidate import Candidate
from opencode_core.plugins.relay import Hooks
from opencode_core.plugins.scope import Attachment, Contribution, Scope

MOST_DIAGNOSTICS = 20


@attrs.frozen(kw_only=True, eq=False)
class Generation:
    """One import of a plugin's code that was admitted.

    Attributes:
        options: What its options are in the host.
        configured: What they were made from; None when the plugin is confined to a project, whose settings decide.
    """

    number: int
    hooks: Hooks
    options: Any = attrs.field(repr=False)
    configured: Mapping[str, JSON] | None = attrs.field(repr=False)
    import_seconds: float


@attrs.define(eq=False, repr=False, kw_only=True)
class Record:
    """One plugin of a host.

    Attributes:
        candidate: How it was found.
        state: What became of it.
        generation: The code that answers now; None when none does.
        attachments: What it registered, by scope.
        quarantined: The scopes it is kept out of, because a hook failed there.
    """

    candidate: Candidate
    id: str = attrs.field()
    state: PluginState = "failed"
    generation: Generation | None = None
    last_number: int = 0
    attachments: dict[Scope, Attachment] = attrs.field(factory=dict)
    quarantined: set[Scope] = attrs.field(factory=set)
    collect_seconds: float = 0.0
    also_found: tuple[str, ...] = ()
    diagnostics: list[Diagnostic] = attrs.field(factory=list)

    @id.default
    def _default_id(self) -> str:
        return self.candidate.id

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.candidate.name

    def settle(self, generation: Generation) -> None:
        """Lets a generation answer; what went wrong with earlier ones is over, except where it is kept out."""
        self.generation, self.last_number, self.state = generation, generation.number, "active"
        kept_out = {scope.name for scope in self.quarantined}
        self.diagnostics = [each for each in self.diagnostics if each.scope in kept_out]

    def note(self, diagnostic: Diagnostic) -> bool:
        """Keeps a diagnostic, and returns whether it says something new."""
        is_new = all(
            (known.problem, known.scope, known.hook) != (diagnostic.problem, diagnostic.scope, diagnostic.hook)
            for known in self.diagnostics
        )
        if is_new:
            self.diagnostics.append(diagnostic)
            del self.diagnostics[:-MOST_DIAGNOSTICS]
        return is_new

    def status(self) -> PluginStatus:
        """Returns what people are shown."""
        candidate, generation = self.candidate, self.generation
        return PluginStatus(
            name=self.name,
            state=self.state,
            origin=candidate.origin,
            location=candidate.location,
            builtin=candidate.builtin,
            version=candidate.version,
            generation=generation.number if generation else 0,
            hooks=generation.hooks.names if generation else (),
            description=generation.hooks.manifest.description if generation else "",
            contributions=tuple(sorted({shown for each in self._contributions() for shown in _shown(each)})),
            import_seconds=generation.import_seconds if generation else 0.0,
            collect_seconds=self.collect_seconds,
            also_found=self.also_found,
            folder=str(candidate.folder) if candidate.folder else None,
            quarantined=tuple(sorted(scope.name for scope in self.quarantined)),
            diagnostics=tuple(self.diagnostics),
        )

    def _contributions(self) -> list[Contribution[Any]]:
        return [each for attachment in self.attachments.values() for each in attachment.contributions]


def _shown(contribution: Contribution[Any]) -> list[str]:
    noun = contribution.slot.noun
    if contribution.slot.name.startswith("opencode_"):
        return [f"hook: {contribution.slot.name}"]
    return [f"{noun}: {key}" for key in contribution.claims or (contribution.key,)]
