"""What the tests of the System Context are made of: sources whose value, presence and availability can be set."""

from pathlib import Path
from typing import Any

import attrs

from opencode_core.context.observe import observe
from opencode_core.model.context import (
    Boundary,
    ContextSource,
    Observation,
    SystemContext,
    combine,
)
from opencode_core.model.location import Location

HERE = Boundary(location=Location(directory=Path("/here"), root=Path("/here"), is_git=False))


@attrs.define
class Loader:
    """Returns a value that can be set, or raises it, and counts how often it is asked."""

    value: Any = "value"
    runs: int = 0

    async def __call__(self) -> Any:
        self.runs += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def source(key: str, value: Any = "value", **changes: Any) -> ContextSource[Any]:
    """Return a source that has a value, or a loader, and says what it is."""
    fields: dict[str, Any] = {
        "load": value if callable(value) else Loader(value),
        "baseline": lambda value: f"{key} is {value}",
        "update": lambda before, now: f"{key} was {before}, is now {now}",
    }
    return ContextSource(key=key, **{**fields, **changes})


def removable(key: str, value: Any = "value", **changes: Any) -> ContextSource[Any]:
    """Return the same with a text for when it is gone."""
    return source(key, value, **{"removed": lambda value: f"{key} no longer is {value}", **changes})


def context(*sources: ContextSource[Any]) -> SystemContext:
    """Return sources as one context."""
    return combine(*(SystemContext((each,), {each.key: "tester"}) for each in sources))


async def observed(*sources: ContextSource[Any], **settings: Any) -> Observation:
    """Observe sources once."""
    return await observe(context(*sources), HERE, **settings)
