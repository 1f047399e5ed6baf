"""Composes the System Context of a Location from what is registered. Loads no source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio

from opencode_core.model.context import ContextSource, SystemContext, combine
from opencode_core.plugins.scope import Contribution, View
from opencode_core.plugins.slots import CONTEXT_PRODUCERS, CONTEXT_SOURCES, ContextProducer


async def compose(view: View) -> SystemContext:
    """Runs all producers concurrently, and joins what they and the plugins contribute in key order.

    Raises:
        DuplicateKeyError: Two sources have one key.
        Exception: Whatever a producer raised: a producer that fails is a defect of the host.
    """
    entries: dict[str, Iterable[ContextSource[Any]]] = {each.key: each.value for each in view.all(CONTEXT_SOURCES)}
    entries.update(await _produce(view.all(CONTEXT_PRODUCERS)))
    return combine(*(SystemContext(tuple(entries[key])) for key in sorted(entries)))


async def _produce(
    producers: Iterable[Contribution[ContextProducer]],
) -> dict[str, tuple[ContextSource[Any], ...]]:
    produced: dict[str, tuple[ContextSource[Any], ...]] = {}
    failures: list[Exception] = []

    async def produce(contribution: Contribution[ContextProducer]) -> None:
        try:
            produced[contribution.key] = tuple(await contribution.value())
        except Exception as error:
            failures.append(error)

    async with anyio.create_task_group() as group:
        for each in producers:
            group.start_soon(produce, each)
    if failures:
        raise failures[0]
    return produced
