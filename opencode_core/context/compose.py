"""Composes the System Context of a Location from what is registered. Loads no source."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import anyio
import attrs

from opencode_core.context.observe import DEADLINE, must_pass
from opencode_core.errors import ContextError
from opencode_core.model.context import ContextSource, SystemContext, combine
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import CONTEXT_PRODUCERS, CONTEXT_SOURCES, ContextProducer


async def compose(view: View, *, deadline: float = DEADLINE) -> SystemContext:
    """Runs all producers concurrently, and joins what they and the plugins contribute in key order.

    Raises:
        DuplicateKeyError: Two sources have one key.
        Exception: Whatever the first producer in key order that failed raised: it is a defect of the host.
    """
    producers = view.all(CONTEXT_PRODUCERS)
    if not producers:  # the registry keeps plugins in key order, and lets nobody claim a key twice
        registered = view.all(CONTEXT_SOURCES)
        return SystemContext(
            tuple([source for each in registered for source in each.value]),
            {source.key: each.owner.name for each in registered for source in each.value},
        )
    entries = [_Entry(each.key, each.owner.name, each.value) for each in view.all(CONTEXT_SOURCES)]
    entries += await _produce(producers, deadline)
    entries.sort(key=lambda entry: entry.key)
    return combine(
        *(SystemContext(each.sources, {source.key: each.owner for source in each.sources}) for each in entries)
    )


@attrs.frozen
class _Entry:
    key: str
    owner: str
    sources: tuple[ContextSource[Any], ...]


async def _produce(producers: Sequence[Contribution[ContextProducer]], deadline: float) -> list[_Entry]:
    produced: dict[str, _Entry] = {}
    failures: dict[str, Exception] = {}

    async def produce(contribution: Contribution[ContextProducer]) -> None:
        key, owner = contribution.key, contribution.owner.name
        try:
            with anyio.fail_after(deadline):
                produced[key] = _Entry(key, owner, await _sources(contribution))
        except BaseException as error:
            if must_pass(error):
                raise
            error.add_note(f"This happened while the context entry '{key}' of '{owner}' was produced.")
            failures[key] = error if isinstance(error, Exception) else _ended(key, owner, error)

    async with anyio.create_task_group() as group:
        for each in producers:
            group.start_soon(produce, each)
    if failures:
        raise failures[min(failures)]
    return list(produced.values())


def _ended(key: str, owner: str, error: BaseException) -> ContextError:
    said = ContextError(
        f"The context entry '{key}' of '{owner}' was not produced: {type(error).__name__}.", "Fix its producer."
    )
    said.__cause__ = error
    return said


async def _sources(contribution: Contribution[ContextProducer]) -> tuple[ContextSource[Any], ...]:
    answer: Any = contribution.value()
    sources = tuple(await answer) if inspect.isawaitable(answer) else answer
    if isinstance(sources, tuple) and all(isinstance(each, ContextSource) for each in sources):
        return sources
    raise ContextError(
        f"The context entry '{contribution.key}' of '{contribution.owner.name}' did not produce context sources.",
        "Make it an async function that returns an iterable of ContextSource.",
    )
