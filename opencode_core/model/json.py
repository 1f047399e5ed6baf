"""What a JSON value is, and how to keep one from changing. Parses nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


def copied(value: JSON) -> JSON:
    """Returns a copy that shares nothing that can change with the original."""
    if isinstance(value, Mapping):
        return {key: copied(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return tuple(copied(member) for member in value)
    return [copied(member) for member in value] if isinstance(value, list) else value


def frozen_copy(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Returns such a copy of a mapping, read-only."""
    return MappingProxyType({key: copied(member) for key, member in value.items()})


def canonical(value: JSON) -> JSON:
    """Returns the same value, with 1 for 1.0: JSON has one kind of number, and stores may write it either way."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: canonical(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(member) for member in value]
    return value


MOST_NESTED = 100
"""How deep a plain value may be: every store keeps it, also inside of an event."""


def plain(value: object, nested: int = 0) -> JSON:
    """Returns a value as what a store would give back: lists for tuples, 1 for 1.0, and nothing that can change.

    Args:
        value: The value.
        nested: How deep it stands in another one.

    Raises:
        TypeError: It is not JSON.
        ValueError: It has a number that JSON does not have, or is nested too deeply.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise ValueError("it holds a number that JSON does not have")
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if nested >= MOST_NESTED:
        raise ValueError(f"it is nested more than {MOST_NESTED} deep")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("it holds a key that is not text")
        return {key: plain(member, nested + 1) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member, nested + 1) for member in value]
    raise TypeError(f"it holds a '{type(value).__name__}', which is not JSON")


def same(one: JSON, other: JSON) -> bool:
    """Whether two plain values are the same JSON: unlike in Python, true is not 1."""
    if isinstance(one, str):
        return one == other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(member, other[key]) for key, member in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return one == other
