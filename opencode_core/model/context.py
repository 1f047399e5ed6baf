"""What a System Context is made of, and what can come of observing one. Loads nothing and renders nothing."""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from opencode_core.errors import DuplicateKeyError
from opencode_core.model.agent import Agent
from opencode_core.model.json import JSON
from opencode_core.model.keys import check_source_key
from opencode_core.model.location import Location

T = TypeVar("T")


class _Sentinel(enum.Enum):
    UNAVAILABLE = "unavailable"
    ABSENT = "absent"


UNAVAILABLE: Final = _Sentinel.UNAVAILABLE
"""What a loader returns when the value cannot be observed now; what was admitted before stays in effect."""

ABSENT: Final = _Sentinel.ABSENT
"""What a loader returns when there is nothing to tell; what was admitted before no longer applies."""

Unavailable: TypeAlias = Literal[_Sentinel.UNAVAILABLE]
Absent: TypeAlias = Literal[_Sentinel.ABSENT]


@attrs.frozen(kw_only=True)
class Boundary:
    """The Safe Provider-Turn Boundary that sources are observed at: for whom, and where.

    Attributes:
        location: Where the session runs.
        session: Its id; empty when somebody only looks what a new session would be told.
        agent: The agent that was sampled for the turn; None when the selected one has no definition.
        visited: The folders, canonical and sorted, out of which the session has read files since it runs here.
    """

    location: Location
    session: str = ""
    agent: Agent | None = None
    visited: tuple[Path, ...] = ()


def _same(value: Any) -> Any:
    return value


def _checked_key(_instance: object, _attribute: object, value: Any) -> None:
    check_source_key(value)


def _checked_deadline(_instance: object, _attribute: object, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < math.inf):
        raise ValueError("The deadline of a context source is a number of seconds above 0, or None.")


@attrs.frozen(kw_only=True, eq=False)
class ContextSource(Generic[T]):
    """One independently observed typed value within the System Context.

    Attributes:
        key: Stable and namespaced, such as ``core/date``.
        load: Observes one coherent value, or returns ``UNAVAILABLE`` or ``ABSENT``. An async function; if it has a
            required argument, it is given the `Boundary`.
        baseline: Renders the value for a fresh baseline.
        update: Renders the newly effective state, from the admitted value and the current one.
        removed: Renders, from an admitted value, what the model is told when the source is gone; None to force a new
            baseline instead.
        encode: Turns the value into the JSON that is stored and compared.
        decode: Turns stored JSON back into the value; raises when it no longer can, which forces a new baseline.
        required: Whether a first baseline waits for it; otherwise it is told when it is first there.
        deadline: How many seconds ``load`` may take; None for as long as the host allows.
        takes_boundary: Whether ``load`` is given the boundary.
    """

    key: str = attrs.field(validator=_checked_key)
    load: Callable[..., Awaitable[T | Unavailable | Absent]]
    baseline: Callable[[T], str]
    update: Callable[[T, T], str]
    removed: Callable[[T], str] | None = None
    encode: Callable[[T], JSON] = _same
    decode: Callable[[JSON], T] = _same
    required: bool = True
    deadline: float | None = attrs.field(default=None, validator=_checked_deadline)
    takes_boundary: bool = attrs.field(
        init=False, default=attrs.Factory(lambda self: _wants_argument(self.load), takes_self=True)
    )


ContextProducer: TypeAlias = Callable[[], Awaitable[Iterable[ContextSource[Any]]]]
"""Makes the sources of one entry anew each time the System Context is composed."""


@attrs.frozen
class SystemContext:
    """The opaque carrier of zero or more context sources, in the order in which they are rendered.

    Attributes:
        sources: The sources.
        owners: Who contributes each, by its key, as far as it is known.
    """

    sources: tuple[ContextSource[Any], ...] = ()
    owners: Mapping[str, str] = attrs.field(factory=dict, eq=False)


def combine(*contexts: SystemContext) -> SystemContext:
    """Joins contexts, keeping the caller's order.

    Raises:
        DuplicateKeyError: Two sources have one key.
    """
    owners: dict[str, str] = {}
    seen: dict[str, str] = {}
    for context in contexts:
        owners.update(context.owners)
        for source in context.sources:
            owner = context.owners.get(source.key, "")
            if source.key in seen:
                raise DuplicateKeyError(source.key, (seen[source.key], owner), what="context source key")
            seen[source.key] = owner
    return SystemContext(tuple(source for context in contexts for source in context.sources), owners)


@attrs.frozen(kw_only=True)
class SnapshotEntry:
    """What one source was when it was last admitted.

    Attributes:
        value: Its encoded value.
        removed: Its removal text, if it has one.
        owner: The plugin that contributed it then, if that was known; it is no part of what was told.
    """

    value: JSON
    removed: str | None = None
    owner: str | None = attrs.field(default=None, eq=False)


Snapshot: TypeAlias = Mapping[str, SnapshotEntry]
"""What the model was last told of each source, by key."""

Texts: TypeAlias = tuple[tuple[str, str], ...]
"""What each source rendered, by key, in the order in which it is told."""


@attrs.frozen(kw_only=True, eq=False)
class Observation:
    """What every source was at one moment.

    Attributes:
        sources: The sources that have something to tell or are unavailable, in order; absent ones are left out.
        values: What they were, by key; ``UNAVAILABLE`` for those that could not be observed.
        reasons: Why those are unavailable, by key.
        owners: Who contributes each, by its key, as far as it is known.
        failed: The plugins that could not be loaded, so that nothing can be said of what they contributed before.
    """

    sources: tuple[ContextSource[Any], ...]
    values: Mapping[str, Any]
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    owners: Mapping[str, str] = attrs.field(factory=dict)
    failed: frozenset[str] = frozenset()

    def without(self, key: str, reason: str) -> Observation:
        """Returns the same observation, with one more source unavailable."""
        values, reasons = {**self.values, key: UNAVAILABLE}, {**self.reasons, key: reason}
        return attrs.evolve(self, values=values, reasons=reasons)

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The keys of the sources that could not be observed, in order."""
        return tuple(source.key for source in self.sources if self.values[source.key] is UNAVAILABLE)


@attrs.frozen(kw_only=True)
class Baseline:
    """A fresh Baseline System Context.

    Attributes:
        text: The exact joined text, the provider-cache prefix.
        parts: The same text by source key, in order, for people who inspect it.
        snapshot: What each source was, by key.
    """

    text: str
    parts: Texts
    snapshot: dict[str, SnapshotEntry]


@attrs.frozen
class Unchanged:
    """The model knows everything already."""


@attrs.frozen(kw_only=True)
class Updated:
    """The model has to be told something.

    Attributes:
        text: Exactly what.
        parts: The same text by source key, in order.
        changed: What changed or is new, by source.
        removed: The sources that are gone, sorted.
        snapshot: The whole snapshot after that.
    """

    text: str
    parts: Texts
    changed: dict[str, SnapshotEntry]
    removed: tuple[str, ...]
    snapshot: dict[str, SnapshotEntry]


@attrs.frozen(kw_only=True)
class ReplacementReady:
    """Only a fresh baseline can tell it.

    Attributes:
        baseline: The fresh one.
        because: The sources that cannot be told otherwise; empty when somebody asked for it.
    """

    baseline: Baseline
    because: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ReplacementBlocked:
    """A fresh baseline is needed and cannot be complete; the old one stays in effect.

    Attributes:
        keys: The sources that were admitted before and are unavailable, in order.
        because: The sources that need it; empty when somebody asked for it.
    """

    keys: tuple[str, ...]
    because: tuple[str, ...] = ()


Reconciled: TypeAlias = Unchanged | Updated | ReplacementReady | ReplacementBlocked


def _wants_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some things that can be called do not say how
        return False
    return any(
        each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        for each in parameters
    )
