"""What a JSON value is, and how to keep one from changing. Parses nothing."""

from __future__ import annotations

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
