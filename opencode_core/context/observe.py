"""Observes every source of a System Context once, all of them concurrently, each under a deadline. Renders nothing.

A loader that raises or overruns counts as unavailable, never as gone, and is reported. Most loaders return at once, so
a task of its own for each would cost more than all of them: one task runs loaders in a row, and another takes over the
rest as soon as one of them has to wait.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from opencode_core.model.context import ABSENT, UNAVAILABLE, Boundary, ContextSource, Observation, SystemContext

DEADLINE = 5.0
"""How many seconds a loader may take that does not say so itself."""


@attrs.frozen(kw_only=True)
class LoadFault:
    """Why one source could not be loaded.

    Attributes:
        key: The source.
        owner: Who contributes it; empty when that is not known.
        reason: What happened, in words.
        error: What it raised; None when it overran.
    """

    key: str
    owner: str
    reason: str
    error: BaseException | None = None


OnLoadFault: TypeAlias = Callable[[LoadFault], None]


def _ignore(_fault: LoadFault) -> None:
    return None


async def observe(
    context: SystemContext, boundary: Boundary, *, deadline: float = DEADLINE, on_fault: OnLoadFault = _ignore
) -> Observation:
    """Returns what each source is now.

    Args:
        context: The sources.
        boundary: For whom and where they are observed.
        deadline: How many seconds a loader may take that does not say so itself.
        on_fault: Is told of every loader that raised or overran.
    """
    observing = _Observing(context, boundary, deadline, on_fault)
    await observing.run()
    values = observing.values
    there = tuple([source for source in context.sources if values[source.key] is not ABSENT])
    return Observation(
        sources=there,
        values={source.key: values[source.key] for source in there},
        reasons=observing.reasons,
        owners=context.owners,
    )


@attrs.define(eq=False)
class _Observing:
    context: SystemContext
    boundary: Boundary
    deadline: float
    on_fault: OnLoadFault
    values: dict[str, Any] = attrs.field(init=False, factory=dict)
    reasons: dict[str, str] = attrs.field(init=False, factory=dict)
    waiting: deque[ContextSource[Any]] = attrs.field(init=False)

    async def run(self) -> None:
        self.waiting = deque(self.context.sources)
        async with anyio.create_task_group() as group:
            while self.waiting:
                row = _Row(self)
                group.start_soon(row.run)
                await row.is_held_up()

    def observed(self, source: ContextSource[Any], value: Any) -> None:
        self.values[source.key] = value
        if value is UNAVAILABLE:
            self.reasons[source.key] = "it is unavailable now"

    def failed(self, source: ContextSource[Any], reason: str, error: BaseException | None = None) -> None:
        self.values[source.key] = UNAVAILABLE
        self.reasons[source.key] = reason
        owner = self.context.owners.get(source.key, "")
        self.on_fault(LoadFault(key=source.key, owner=owner, reason=reason, error=error))


@attrs.define(eq=False)
class _Row:
    """Loads one source after the other, until none is left or one does not come back in time."""

    _observing: _Observing
    _scope: anyio.CancelScope = attrs.field(init=False, factory=anyio.CancelScope)
    _current: ContextSource[Any] | None = attrs.field(init=False, default=None)
    _has_begun: bool = attrs.field(init=False, default=False)
    _was_held_up: bool = attrs.field(init=False, default=False)

    async def run(self) -> None:
        self._has_begun = True
        observing = self._observing
        with self._scope:
            while observing.waiting and not self._was_held_up:  # else another row is responsible for the rest
                self._current = observing.waiting.popleft()
                await self._load(self._current)
                self._current = None
        if self._scope.cancelled_caught and self._current is not None:
            observing.failed(self._current, f"it did not answer in {self._patience(self._current):g} s")

    async def is_held_up(self) -> None:
        """Returns when everything is loaded, or the current source has to be waited for; then its time begins."""
        await anyio.lowlevel.checkpoint()
        while not self._has_begun:
            await anyio.lowlevel.checkpoint()
        if self._current is not None:
            self._was_held_up = True
            self._scope.deadline = anyio.current_time() + self._patience(self._current)

    async def _load(self, source: ContextSource[Any]) -> None:
        try:
            value = await (source.load(self._observing.boundary) if source.takes_boundary else source.load())
        except BaseException as error:  # whatever it is, it must not fail the boundary for everybody
            if must_pass(error):
                raise
            self._observing.failed(source, _words(error), error)
        else:
            self._observing.observed(source, value)

    def _patience(self, source: ContextSource[Any]) -> float:
        return self._observing.deadline if source.deadline is None else source.deadline


def must_pass(error: BaseException) -> bool:
    """Whether what was raised is for somebody further out: an interruption, or a cancellation from outside.

    A cancellation that nobody outside asked for is the loader's own: it waited for something that was cancelled.
    """
    if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        return True
    if isinstance(error, BaseExceptionGroup) and error.subgroup((KeyboardInterrupt, GeneratorExit)) is not None:
        return True
    cancelled = anyio.get_cancelled_exc_class()
    is_cancelled = isinstance(error, cancelled) or (
        isinstance(error, BaseExceptionGroup) and error.subgroup(cancelled) is not None
    )
    return is_cancelled and anyio.current_effective_deadline() == -math.inf


def _words(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())  # it stands in the middle of a sentence
    except (Exception, SystemExit):  # it is the plugin's own class, and may be wrong too
        text = ""
    return f"it raised {type(error).__name__}: {text}" if text else f"it raised {type(error).__name__}"
