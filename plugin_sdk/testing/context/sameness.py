"""The law of sameness: as long as nothing changes, the value is the same, whoever asks and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_core.model.json import JSON, same
from plugin_sdk.testing.context.base import ContextLaws, Subject
from plugin_sdk.testing.context.elsewhere import Elsewhere, NoValueElsewhere, ask_elsewhere
from plugin_sdk.testing.storage.base import broken, together

LAW = "sameness"
AT_ONCE = 8


class SamenessLaws(ContextLaws):
    """A value that differs without a reason tells the model something at every turn."""

    async def test_an_unchanged_world_gives_the_same_value_twice(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            first = await subject.encoded()
            self.clock.move(minutes=1)  # which is no change: else there would be one at every turn
            _expect_same("loaded again a minute later", first, await subject.encoded())

    async def test_an_unchanged_world_gives_the_same_value_in_another_host(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            first = await subject.encoded()
        async with self.loaded(directory) as subject:
            _expect_same("loaded in another host", first, await subject.encoded())

    async def test_an_unchanged_world_gives_the_same_value_to_many_at_once(self, directory: Path) -> None:
        values: list[JSON] = []

        async def look(subject: Subject) -> None:
            values.append(await subject.encoded())

        async with self.loaded(directory) as subject:
            first = await subject.encoded()
            async with together() as tasks:
                for _ in range(AT_ONCE):
                    tasks.start_soon(look, subject)
        for value in values:
            _expect_same(f"loaded {AT_ONCE} times at once", first, value)

    def test_an_unchanged_world_gives_the_same_value_in_another_process(self, directory: Path) -> None:
        # Python orders the texts of a set by a seed that is another one in each process.
        place = Elsewhere.of(
            self.plugin,
            key=self.key,
            directory=directory,
            options=self.options or {},
            at=self.clock.at,
            environ=self.environ,
            config_dir=self.config_dir,
        )
        if place is None:
            pytest.skip("The plugin is an object of this process, so that another one cannot load it.")
        try:
            one, other = ask_elsewhere(place, seeds=(1, 2), patience=self.patience)
        except NoValueElsewhere as error:
            pytest.skip(f"In another process there is no value to compare: {error}")
        _expect_same("loaded in another process", one["value"], other["value"])
        if one["text"] != other["text"]:
            raise broken(LAW, f"another process renders {other['text']!r} of the same value instead of {one['text']!r}")


def _expect_same(how: str, first: JSON, value: JSON) -> None:
    if not same(first, value):
        raise broken(LAW, f"nothing changed, but the value that was {first!r} is {value!r} when it is {how}")
