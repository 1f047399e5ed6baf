"""The laws of contribution, observation and the deadline: the source is there, and has a value in time."""

from __future__ import annotations

from pathlib import Path

from plugin_sdk.testing.context.base import ContextLaws
from plugin_sdk.testing.storage.base import expect


class ObservationLaws(ContextLaws):
    """In the world that was prepared, the source has something to tell, and nobody complains."""

    async def test_the_source_is_contributed_and_nothing_goes_wrong(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            await subject.source()
            await subject.observe()
        said = [f"{each.problem} {each.remedy}".strip() for each in subject.plugin.status.diagnostics]
        expect("contribution", "the plugin opens, observes and closes without a complaint", found=said, wanted=[])

    async def test_the_first_observation_is_a_value(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            await subject.value()

    async def test_it_loads_within_its_deadline(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            late = [
                f"'{key}': {reason}"
                for key, reason in (await subject.observe()).reasons.items()
                if reason.startswith("it did not answer")
            ]
        expect("the deadline", "every source of the plugin answers in time", found=late, wanted=[])
