"""Tells the model today's date, as the host's calendar shows it, or that of a configured time zone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import date, datetime
from zoneinfo import ZoneInfo

import attrs

from plugin_sdk import ContextSource, PluginManifest, PluginScope, hookimpl


def _known(_options: object, field: object, name: str) -> None:
    try:
        _zone(name)
    except Exception as error:  # a name that no zone has fails in many ways
        raise ValueError("No time zone has that name.", field) from error


def _zone(name: str) -> ZoneInfo | None:
    return ZoneInfo(name) if name else None


@attrs.frozen(kw_only=True)
class Options:
    """What can be configured.

    Attributes:
        timezone: The zone whose calendar counts, such as ``Europe/Berlin``; the host's own when empty.
    """

    timezone: str = attrs.field(default="", validator=_known)


opencode_plugin = PluginManifest(description="Tells the model today's date.", options=Options)


@hookimpl
def opencode_context_sources(options: Options, scope: PluginScope) -> Iterator[ContextSource[date]]:
    """Contributes the date, which changes at most once a day, so the cache prefix lasts."""
    yield ContextSource(
        key="core/date",
        load=_today(scope.host.now, _zone(options.timezone)),
        baseline=lambda today: f"Today's date: {_shown(today)}",
        update=lambda _before, today: f"Today's date is now: {_shown(today)}",
        encode=date.isoformat,
        decode=lambda stored: date.fromisoformat(str(stored)),
    )


def _today(now: Callable[[], datetime], zone: ZoneInfo | None) -> Callable[[], Awaitable[date]]:
    async def load() -> date:
        return now().astimezone(zone).date() if zone else now().date()

    return load


def _shown(day: date) -> str:
    return f"{_DAYS[day.weekday()]} {_MONTHS[day.month - 1]} {day.day:02} {day.year}"


# Not strftime, whose names follow the locale of the process: the same day must be the same bytes everywhere.
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
