"""Decides what the model is told, from one observation. Pure: loads nothing and stores nothing.

A source whose renderer or codec fails raises `SourceFaultError`: the caller counts it as unavailable and decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from opencode_core.errors import EmptyRenderingError, InitializationBlockedError, SourceFaultError
from opencode_core.model.context import (
    UNAVAILABLE,
    Baseline,
    ContextSource,
    Observation,
    Reconciled,
    ReplacementBlocked,
    ReplacementReady,
    Snapshot,
    SnapshotEntry,
    Texts,
    Unchanged,
    Updated,
)
from opencode_core.model.json import JSON, plain, same

SEPARATOR = "\n\n"
"""Stands between what two sources say."""


def initialize(observation: Observation) -> Baseline:
    """Renders a first baseline with its snapshot.

    Raises:
        InitializationBlockedError: Required sources are unavailable; an incomplete baseline is never made.
        SourceFaultError: A source cannot be rendered or encoded.
    """
    required = {source.key for source in observation.sources if source.required}
    blocked = tuple(key for key in observation.unavailable if key in required)
    if blocked:
        raise InitializationBlockedError(blocked, observation.reasons, observation.owners)
    return _baseline(observation)


def replace(observation: Observation, snapshot: Snapshot) -> ReplacementReady | ReplacementBlocked:
    """Renders a fresh generation, unless something that the model was told before cannot be observed now.

    Raises:
        SourceFaultError: A source cannot be rendered or encoded.
    """
    return _replaced(observation, snapshot, ())


def reconcile(observation: Observation, snapshot: Snapshot) -> Reconciled:
    """Compares what is observed with what the model was told, and returns the one thing to do about it.

    Raises:
        SourceFaultError: A source cannot be rendered or encoded.
    """
    compared = _compare(observation, snapshot)
    if compared.incompatible:
        return _replaced(observation, snapshot, compared.incompatible)
    if not compared.differing and not compared.gone:
        return Unchanged()
    return _updated(compared, snapshot, observation.owners)


@attrs.frozen(eq=False)
class _Differing:
    """A source that is new or changed; ``before`` is the admitted value of one that changed."""

    source: ContextSource[Any]
    value: Any
    encoded: JSON
    is_new: bool
    before: Any = None


@attrs.frozen(eq=False)
class _Compared:
    differing: list[_Differing]
    gone: tuple[str, ...]
    incompatible: tuple[str, ...]


def _compare(observation: Observation, snapshot: Snapshot) -> _Compared:
    differing: list[_Differing] = []
    incompatible: list[str] = []
    for source in observation.sources:
        value = observation.values[source.key]
        if value is UNAVAILABLE:
            continue
        encoded, entry = _encoded(source, value), snapshot.get(source.key)
        if entry is None:
            differing.append(_Differing(source, value, encoded, True))
        elif not same(encoded, entry.value):
            try:
                before = source.decode(entry.value)
            except (Exception, SystemExit):  # whatever it is, what was told before can no longer be understood
                incompatible.append(source.key)
            else:
                differing.append(_Differing(source, value, encoded, False, before))
    missing = (key for key in snapshot if key not in observation.values)
    gone = tuple(sorted(key for key in missing if not _is_lost(observation, snapshot, key)))
    incompatible += [key for key in gone if snapshot[key].removed is None]
    return _Compared(differing, gone, tuple(incompatible))


def _updated(compared: _Compared, snapshot: Snapshot, owners: Mapping[str, str]) -> Updated:
    texts = [(each.source.key, _update(each)) for each in compared.differing]
    texts += [(key, snapshot[key].removed or "") for key in compared.gone]
    changed = {
        each.source.key: _entry(each.source, each.value, each.encoded, owners.get(each.source.key))
        for each in compared.differing
    }
    kept = {key: entry for key, entry in snapshot.items() if key not in compared.gone}
    return Updated(
        text=SEPARATOR.join(text for _key, text in texts),
        parts=tuple(texts),
        changed=changed,
        removed=compared.gone,
        snapshot={**kept, **changed},
    )


def _update(differing: _Differing) -> str:
    source = differing.source
    if differing.is_new:
        return _rendered(source, "baseline", source.baseline, differing.value)
    return _rendered(source, "update", source.update, differing.before, differing.value)


def _replaced(
    observation: Observation, snapshot: Snapshot, because: tuple[str, ...]
) -> ReplacementReady | ReplacementBlocked:
    lost = [key for key in snapshot if key not in observation.values and _is_lost(observation, snapshot, key)]
    blocked = (*(key for key in observation.unavailable if key in snapshot), *sorted(lost))
    if blocked:
        return ReplacementBlocked(keys=blocked, because=because)
    return ReplacementReady(baseline=_baseline(observation), because=because)


def _baseline(observation: Observation) -> Baseline:
    there = [source for source in observation.sources if observation.values[source.key] is not UNAVAILABLE]
    values, owners = observation.values, observation.owners
    parts: Texts = tuple((each.key, _rendered(each, "baseline", each.baseline, values[each.key])) for each in there)
    return Baseline(
        text=SEPARATOR.join(text for _key, text in parts),
        parts=parts,
        snapshot={
            each.key: _entry(each, values[each.key], _encoded(each, values[each.key]), owners.get(each.key))
            for each in there
        },
    )


def _is_lost(observation: Observation, snapshot: Snapshot, key: str) -> bool:
    """Whether a source is missing only because its plugin could not be loaded: that is not the same as gone."""
    return snapshot[key].owner in observation.failed


def _entry(source: ContextSource[Any], value: Any, encoded: JSON, owner: str | None) -> SnapshotEntry:
    removed = None if source.removed is None else _rendered(source, "removed", source.removed, value)
    return SnapshotEntry(value=encoded, removed=removed, owner=owner)


def _encoded(source: ContextSource[Any], value: Any) -> JSON:
    try:
        return plain(source.encode(value))
    except (Exception, SystemExit) as error:
        raise SourceFaultError(source.key, "encode", error) from error


def _rendered(source: ContextSource[Any], rendering: str, render: Callable[..., str], *values: Any) -> str:
    try:
        text = render(*values)
    except (Exception, SystemExit) as error:
        raise SourceFaultError(source.key, rendering, error) from error
    if not isinstance(text, str):
        raise SourceFaultError(source.key, rendering, TypeError(f"it returned a '{type(text).__name__}', not text"))
    if not text:
        raise EmptyRenderingError(source.key, rendering)
    return text
