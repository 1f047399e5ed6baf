"""The law of removal: when a source is gone, the model is told so, or begins anew."""

from __future__ import annotations

from pathlib import Path

from opencode_core.model.context import Observation, Reconciled, ReplacementReady, SnapshotEntry, Updated
from plugin_sdk.testing.context.base import ContextLaws, Subject
from plugin_sdk.testing.context.change import expect_unchanged
from plugin_sdk.testing.storage.base import broken

LAW = "removal"


class RemovalLaws(ContextLaws):
    """What no longer holds is never left standing."""

    async def test_the_source_says_what_is_told_when_it_is_gone(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            source = await subject.source()
        if self.removable and source.removed is None:
            raise broken(LAW, "the source has no 'removed'; write one, or say removable=False of a suite that knows so")
        if not self.removable and source.removed is not None:
            raise broken(LAW, "the source has a 'removed', so do not say removable=False")

    async def test_the_model_is_told_when_the_plugin_is_gone(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            snapshot = await self._snapshot(subject)
            await subject.plugin.host.plugins.remove(subject.plugin.name)
            self._expect_told("the plugin was removed", await subject.reconciled(snapshot))

    async def test_the_model_is_told_once_when_there_is_nothing_to_tell(self, directory: Path) -> None:
        self.needs_take_away()
        async with self.loaded(directory) as subject:
            snapshot = await self._snapshot(subject)
            self.take_away(directory)
            self._expect_absent(await subject.observe())
            outcome = await subject.reconciled(snapshot)
            self._expect_told("it was taken away", outcome)
            if isinstance(outcome, Updated):
                expect_unchanged("after its removal was told", await subject.reconciled(outcome.snapshot))

    async def _snapshot(self, subject: Subject) -> dict[str, SnapshotEntry]:
        """Tells the model of this source alone: what else the plugin contributes may go or stay."""
        return {self.key: (await subject.told()).snapshot[self.key]}

    def _expect_absent(self, observation: Observation) -> None:
        if self.key in observation.unavailable:
            why = observation.reasons[self.key]
            raise broken(LAW, f"after 'take_away' it is unavailable, so what was told stays: return ABSENT ({why})")
        if self.key in observation.values:
            raise broken(LAW, "after 'take_away' it still has a value; return ABSENT when there is nothing to tell")

    def _expect_told(self, when: str, outcome: Reconciled) -> None:
        kind, words = (Updated, "what 'removed' says") if self.removable else (ReplacementReady, "a new baseline")
        if not isinstance(outcome, kind):
            raise broken(LAW, f"when {when} the model must get {words}, and gets '{type(outcome).__name__}'")
