"""Makes values of any class of the model from the types of its fields: some by hand, and any by Hypothesis."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from opencode_core.model.json import JSON

TEXT = 'é 世 🙂 "\\\n'
OBJECT: JSON = {"ü": [1, -2.5, None, True, {"deep": []}], "a": {}}


def bare(cls: type) -> Any:
    """Returns a value with nothing but what must be given."""
    return cls(
        **{
            field.name: _made(field.name, field.type, 0, bare)
            for field in fields_of(cls)
            if field.default is attrs.NOTHING
        }
    )


def full(cls: type, choice: int = 0) -> Any:
    """Returns a value in which every field is given; ``choice`` picks among the kinds that a field can be."""
    return cls(
        **{
            field.name: _made(field.name, field.type, choice, lambda each: full(each, choice))
            for field in fields_of(cls)
        }
    )


def all_of(cls: type) -> list[Any]:
    """Returns one bare value, and full ones until every kind of every field was there."""
    made = [bare(cls)]
    for choice in range(8):
        value = full(cls, choice)
        if value not in made:
            made.append(value)
    return made


def any_of(cls: Any) -> st.SearchStrategy[Any]:
    """Returns a strategy for everything that a class can be."""
    return st.deferred(lambda: _any(cls))


def fields_of(cls: type) -> Sequence[Any]:
    """Returns the fields of a class, with types instead of their names."""
    attrs.resolve_types(cls, localns={"JSON": JSON, "Mapping": Mapping, "Sequence": Sequence})
    return tuple(attrs.fields(cls))


def _made(name: str, kind: Any, choice: int, make: Callable[[type], Any]) -> Any:
    origin, arguments = get_origin(kind), [each for each in get_args(kind) if each is not NoneType]
    if _is_json(kind):
        return OBJECT
    if origin in (Union, UnionType):
        return _made(name, arguments[choice % len(arguments)], choice, make)
    if origin is Literal:
        return arguments[choice % len(arguments)]
    if origin is tuple:
        return tuple(_made(name, arguments[0], each, make) for each in (choice, choice + 1))
    if origin is Mapping:
        return {"z ü": _made(name, arguments[1], choice, make), "b": _made(name, arguments[1], choice + 1, make)}
    if attrs.has(kind):
        return make(kind)
    # No two fields have the same text or number, so that nobody can swap them unseen.
    number = sum(name.encode())
    simple: dict[Any, Any] = {
        str: f"{name} {TEXT}",
        int: number,
        bool: choice % 2 == 0,
        Decimal: Decimal(number) / 1000,
    }
    return simple[kind]


@cache
def _any(kind: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_json(kind):
        return ANY_JSON
    if origin in (Union, UnionType):
        return st.one_of([_any(each) for each in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(any_of(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return ANY_OBJECT if _is_json(arguments[1]) else st.dictionaries(_TEXT, any_of(arguments[1]), max_size=3)
    if attrs.has(kind):
        return st.builds(kind, **{field.name: any_of(field.type) for field in fields_of(kind)})
    return _SIMPLE[kind]


def _is_json(kind: Any) -> bool:
    return float in get_args(kind)  # nothing else in the model is a float


_TEXT = st.text(max_size=12)
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
ANY_OBJECT = st.dictionaries(_TEXT, ANY_JSON, max_size=3)
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    NoneType: st.none(),
    str: _TEXT,
    int: st.integers(min_value=-(2**63), max_value=2**63 - 1),
    bool: st.booleans(),
    Decimal: st.decimals(min_value=0, max_value=100_000, places=6),
}
