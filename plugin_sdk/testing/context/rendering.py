"""The law of rendering: a rendering is text, and depends on nothing but the value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from opencode_core.model.context import ContextSource
from opencode_core.model.json import same
from plugin_sdk.testing.context.base import ContextLaws, decoded, encoded, rendered
from plugin_sdk.testing.context.codec import stored
from plugin_sdk.testing.storage.base import broken, expect

LAW = "rendering"


class RenderingLaws(ContextLaws):
    """What the model was told can be told again, and is the same text."""

    async def test_every_rendering_is_text_and_always_the_same(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            source, value = await subject.source(), await subject.value()
            before = encoded(source, value)
            for name, render in _renderings(source).items():
                text = rendered(name, render, value)
                self.clock.move(days=40)
                expect(LAW, f"'{name}' tells no time", found=rendered(name, render, value), wanted=text)
            after = encoded(source, value)
        if not same(before, after):
            raise broken(LAW, f"rendering a value changed it from {before!r} to {after!r}")

    async def test_a_stored_value_is_rendered_as_the_observed_one_was(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            source, value = await subject.source(), await subject.value()
            for name, render in _renderings(source).items():
                told = rendered(name, render, value)
                again = rendered(name, render, decoded(source, stored(encoded(source, value))))
                expect(LAW, f"'{name}' of the value that was read back", found=again, wanted=told)

    async def test_an_update_is_text_and_always_the_same(self, directory: Path) -> None:
        self.needs_change()
        async with self.loaded(directory) as subject:
            source, before = await subject.source(), await subject.value()
            was = stored(encoded(source, before))
            self.change(directory)
            now = await subject.value()
            text = rendered("update", source.update, before, now)
            again = rendered("update", source.update, decoded(source, was), now)
            expect(LAW, "'update' from the value that was read back", found=again, wanted=text)


def _renderings(source: ContextSource[Any]) -> dict[str, Callable[[Any], str]]:
    renderings = {"baseline": source.baseline}
    return renderings if source.removed is None else {**renderings, "removed": source.removed}
