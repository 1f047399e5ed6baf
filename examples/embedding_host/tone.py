"""A plugin in a single file, which the host loads by its path and reloads while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from plugin_sdk import ContextSource, hookimpl

TONE = "formal"


@hookimpl
def opencode_context_sources() -> Iterator[ContextSource[str]]:
    """Contributes how answers should sound."""

    async def load() -> str:
        return TONE

    yield ContextSource(
        key="support/tone",
        load=load,
        baseline=lambda tone: f"Answer in a {tone} tone.",
        update=lambda _before, tone: f"From now on, answer in a {tone} tone.",
    )
