"""The law of cancellation: a load that is given up ends, and harms no other."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from opencode_core.model.context import Boundary
from opencode_core.model.json import same
from plugin_sdk.testing.context.base import ContextLaws, Subject
from plugin_sdk.testing.storage.base import broken

LAW = "cancellation"
WAITS = 20
"""At how many of the places where a load waits it is given up, at most."""


class CancellationLaws(ContextLaws):
    """People interrupt sessions, and hosts do not wait for ever."""

    async def test_a_load_that_is_cancelled_ends_and_the_next_one_works(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            before = await subject.encoded()
            for wait in range(WAITS):
                with self.soon(LAW, "a load that is cancelled must end"):
                    was_given_up = await _given_up_at(wait, subject)
                with self.soon(LAW, "a load after one that was cancelled must end"):
                    after = await subject.encoded()
                if not same(before, after):
                    raise broken(LAW, f"after a load that was cancelled {before!r} is {after!r}")
                if not was_given_up:
                    break


async def _given_up_at(wait: int, subject: Subject) -> bool:
    """Loads, and gives it up when it waits for the given time; returns whether it came to that."""
    source, boundary = await subject.source(), Boundary(location=subject.plugin.host.location.location)

    async def load() -> None:
        await (source.load(boundary) if source.takes_boundary else source.load())

    with anyio.CancelScope() as scope:
        try:
            await _stepped(load(), wait, scope.cancel)
        except Exception as error:
            raise broken(LAW, f"a load that was cancelled raised {type(error).__name__}: {error}") from error
    return scope.cancel_called


@types.coroutine
def _stepped(steps: Coroutine[Any, Any, None], wait: int, give_up: Callable[[], None]) -> Generator[Any, Any, None]:
    """Runs something step by step, so that it is given up exactly where it waits for the given time."""
    resume: Callable[[], Any] = partial(steps.send, None)
    while True:
        try:
            awaited = resume()
        except StopIteration:
            return
        if wait == 0:
            give_up()
        wait -= 1
        try:
            resume = partial(steps.send, (yield awaited))
        except BaseException as error:  # which is how it is told to end
            resume = partial(steps.throw, error)
