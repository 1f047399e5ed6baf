"""The law of change: what the model knows is not told again, and what changed is told once."""

from __future__ import annotations

from pathlib import Path

from opencode_core.model.context import Reconciled, ReplacementBlocked, ReplacementReady, Unchanged, Updated
from opencode_core.model.json import same
from plugin_sdk.testing.context.base import ContextLaws
from plugin_sdk.testing.context.codec import stored_snapshot
from plugin_sdk.testing.storage.base import broken, expect

LAW = "change"


class ChangeLaws(ContextLaws):
    """Every boundary compares what is with what was told, and says the difference."""

    async def test_what_was_told_is_not_told_again(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            baseline = await subject.told()
            expect_unchanged("after a first baseline", await subject.reconciled(baseline.snapshot))

    async def test_what_was_told_is_not_told_again_after_a_restart(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            snapshot = stored_snapshot((await subject.told()).snapshot)
        async with self.loaded(directory) as subject:
            expect_unchanged("after the snapshot was stored and read", await subject.reconciled(snapshot))

    async def test_a_change_is_told_once(self, directory: Path) -> None:
        self.needs_change()
        async with self.loaded(directory) as subject:
            baseline = await subject.told()
            self.change(directory)
            updated = self._updated(await subject.reconciled(stored_snapshot(baseline.snapshot)))
            expect(LAW, "the sources that are told of", found=[key for key, _ in updated.parts], wanted=[self.key])
            expect(LAW, "the sources that are gone", found=updated.removed, wanted=())
            expect_unchanged("after the change was told", await subject.reconciled(updated.snapshot))

    async def test_a_change_is_the_same_in_another_host(self, directory: Path) -> None:
        self.needs_change()
        async with self.loaded(directory) as subject:
            await subject.value()
            self.change(directory)
            seen = await subject.encoded()
        async with self.loaded(directory) as subject:
            found = await subject.encoded()
        if not same(seen, found):
            raise broken(LAW, f"after 'change' the host that was open sees {seen!r}, and a new one {found!r}")

    def _updated(self, outcome: Reconciled) -> Updated:
        match outcome:
            case Updated():
                return outcome
            case Unchanged():
                raise broken(LAW, f"after 'change' the value of '{self.key}' is what it was, so nothing is told")
            case ReplacementReady(because=because) | ReplacementBlocked(because=because):
                raise broken(LAW, f"after 'change' a new baseline is needed, because of {', '.join(because)}")


def expect_unchanged(when: str, outcome: Reconciled) -> None:
    """Expects that the model is told nothing."""
    if not isinstance(outcome, Unchanged):
        said = outcome.text if isinstance(outcome, Updated) else "a new baseline"
        raise broken(LAW, f"{when} nothing changed, but the model would be told: {said}")
