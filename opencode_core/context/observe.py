"""Observes every source of a System Context once, all of them concurrently. Renders nothing."""

from __future__ import annotations

from typing import Any

import anyio

from opencode_core.model.context import ContextSource, SystemContext


async def observe(context: SystemContext) -> dict[str, Any]:
    """Returns what each source is now, by key; a value may be ``UNAVAILABLE``.

    Raises:
        Exception: Whatever the first source in composition order that failed raised: it is a defect of that source.
    """
    observed: dict[str, Any] = {}
    failures: dict[str, Exception] = {}

    async def load(source: ContextSource[Any]) -> None:
        try:
            observed[source.key] = await source.load()
        except Exception as error:
            error.add_note(f"This happened while the context source '{source.key}' was loaded.")
            failures[source.key] = error

    async with anyio.create_task_group() as group:
        for source in context.sources:
            group.start_soon(load, source)
    for source in context.sources:
        if source.key in failures:
            raise failures[source.key]
    return {source.key: observed[source.key] for source in context.sources}
