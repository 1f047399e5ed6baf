"""Observes every source of a System Context once, all of them concurrently. Renders nothing."""

from __future__ import annotations

from typing import Any

import anyio

from opencode_core.model.context import ContextSource, SystemContext


async def observe(context: SystemContext) -> dict[str, Any]:
    """Returns what each source is now, by key; a value may be ``UNAVAILABLE``."""
    observed: dict[str, Any] = {}

    async def load(source: ContextSource[Any]) -> None:
        observed[source.key] = await source.load()

    async with anyio.create_task_group() as group:
        for source in context.sources:
            group.start_soon(load, source)
    return {source.key: observed[source.key] for source in context.sources}
