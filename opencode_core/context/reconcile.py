"""Decides what the model is told, from one observation. Pure: loads nothing and stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencode_core.errors import EmptyRenderingError, InitializationBlockedError
from opencode_core.model.context import UNAVAILABLE, Baseline, ContextSource, SnapshotEntry, SystemContext


def initialize(context: SystemContext, observed: Mapping[str, Any]) -> Baseline:
    """Renders a fresh baseline with its snapshot.

    Raises:
        InitializationBlockedError: Sources are unavailable; an incomplete baseline is never made.
        EmptyRenderingError: A source rendered nothing.
    """
    blocked = tuple(source.key for source in context.sources if observed[source.key] is UNAVAILABLE)
    if blocked:
        raise InitializationBlockedError(blocked)
    parts = tuple((source.key, _baseline(source, observed[source.key])) for source in context.sources)
    return Baseline(
        text="\n\n".join(text for _key, text in parts),
        parts=parts,
        snapshot={source.key: _entry(source, observed[source.key]) for source in context.sources},
    )


def _baseline(source: ContextSource[Any], value: Any) -> str:
    return _required(source, "baseline", source.baseline(value))


def _entry(source: ContextSource[Any], value: Any) -> SnapshotEntry:
    removed = _required(source, "removed", source.removed(value)) if source.removed is not None else None
    return SnapshotEntry(value=source.encode(value), removed=removed)


def _required(source: ContextSource[Any], rendering: str, text: str) -> str:
    if not text:
        raise EmptyRenderingError(source.key, rendering)
    return text
