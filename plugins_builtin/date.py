"""Tells the model today's date, as the host's calendar shows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from plugin_sdk import ContextSource, PluginManifest, hookimpl

opencode_plugin = PluginManifest(description="Tells the model today's date.")


@hookimpl
def opencode_context_sources() -> Iterator[ContextSource[str]]:
    """Contributes the date, which changes at most once a day, so the cache prefix lasts."""
    yield ContextSource(
        key="core/date",
        load=_today,
        baseline=lambda today: f"Today's date: {today}",
        update=lambda _before, today: f"Today's date is now: {today}",
    )


async def _today() -> str:
    return datetime.now().astimezone().strftime("%a %b %d %Y")
