"""What a caller asks of the writing thread, and the outcome it waits for. Knows no database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from plugin_sdk.storage import Outcome

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class Job(Generic[T]):
    """Some work on a ``T``, and what it came to."""

    work: Callable[[T], Any]
    outcome: Outcome[Any] = attrs.field(init=False, factory=Outcome)
