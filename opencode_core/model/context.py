"""What a System Context is made of. Loads nothing and renders nothing."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from opencode_core.errors import DuplicateKeyError
from opencode_core.model.json import JSON
from opencode_core.model.keys import check_source_key

T = TypeVar("T")


class _Sentinel(enum.Enum):
    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = _Sentinel.UNAVAILABLE
"""What a loader returns when the value cannot be observed now; what was admitted before stays in effect."""

Unavailable: TypeAlias = Literal[_Sentinel.UNAVAILABLE]


def _same(value: Any) -> Any:
    return value


@attrs.frozen(kw_only=True, eq=False)
class ContextSource(Generic[T]):
    """One independently observed typed value within the System Context.

    Attributes:
        key: Stable and namespaced, such as ``core/date``.
        load: Observes one coherent value, or returns ``UNAVAILABLE``.
        baseline: Renders the value for a fresh baseline.
        update: Renders the newly effective state, from the admitted value and the current one.
        removed: Renders, from an admitted value, what the model is told when the source is gone; None to force a new
            baseline instead.
        encode: Turns the value into the JSON that is stored and compared.
        decode: Turns stored JSON back into the value; raises when it no longer can.
    """

    key: str = attrs.field(validator=lambda _self, _attribute, value: check_source_key(value) and None)
    load: Callable[[], Awaitable[T | Unavailable]]
    baseline: Callable[[T], str]
    update: Callable[[T, T], str]
    removed: Callable[[T], str] | None = None
    encode: Callable[[T], JSON] = _same
    decode: Callable[[JSON], T] = _same


ContextProducer: TypeAlias = Callable[[], Awaitable[Iterable[ContextSource[Any]]]]
"""Makes the sources of one entry anew each time the System Context is composed."""


@attrs.frozen
class SystemContext:
    """The opaque carrier of zero or more context sources, in the order in which they are rendered."""

    sources: tuple[ContextSource[Any], ...] = ()


def combine(*contexts: SystemContext) -> SystemContext:
    """Joins contexts, keeping the caller's order.

    Raises:
        DuplicateKeyError: Two sources have one key.
    """
    sources = tuple(source for context in contexts for source in context.sources)
    seen: set[str] = set()
    for source in sources:
        if source.key in seen:
            raise DuplicateKeyError(source.key, ("", ""), what="context source key")
        seen.add(source.key)
    return SystemContext(sources)


@attrs.frozen(kw_only=True)
class SnapshotEntry:
    """What one source was when it was last admitted: its encoded value, and its removal text if it has one."""

    value: JSON
    removed: str | None = None


@attrs.frozen(kw_only=True)
class Baseline:
    """A fresh Baseline System Context.

    Attributes:
        text: The exact joined text, the provider-cache prefix.
        parts: The same text by source key, in order, for people who inspect it.
        snapshot: What each source was, by key.
    """

    text: str
    parts: tuple[tuple[str, str], ...]
    snapshot: dict[str, SnapshotEntry]
