"""Stores and shows what the function of a context source returns, by its annotation. Loads nothing."""

from __future__ import annotations

import functools
import inspect
import json
import operator
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Set
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from opencode_core.model.context import ABSENT, UNAVAILABLE
from opencode_core.model.json import JSON, plain, same

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["SourceCodec", "codec_of", "labelled"]


def labelled(label: str, value: JSON) -> str:
    """Returns a value with its name in front, in as many lines as it needs; mappings are in the order of their keys."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{label}:\n{text}" if "\n" in text else f"{label}: {text}"


def codec_of(function: Callable[..., Any]) -> SourceCodec:
    """Returns how the values that a function returns are stored."""
    return SourceCodec(_returned(function))


@attrs.define(eq=False)
class SourceCodec:
    """Turns values of one type into JSON and back.

    It lives as long as the source: one for all would keep the classes of old generations alive.

    Attributes:
        kind: The type, as it is annotated; None when there is nothing to go by.
    """

    kind: Any

    def encode(self, value: Any) -> JSON:
        """Returns the JSON that stands for a value; sets are sorted.

        Raises:
            TypeError: It is not JSON, nor anything that can be read back.
        """
        if type(value) is str:
            return value
        if self.kind is not None:
            return plain(self._converter.unstructure(value))
        try:
            return plain(value)
        except TypeError as error:
            raise TypeError(f"{error}, and no annotation of its function says how to read it back") from error

    def decode(self, stored: JSON) -> Any:
        """Returns the value that JSON stands for.

        Raises:
            ValueError: It does not fit the annotation any more.
        """
        from cattrs.errors import StructureHandlerNotFoundError

        if self.kind is None:
            return stored
        try:
            value = self._converter.structure(stored, self.kind)
        except StructureHandlerNotFoundError:  # such as a type of JSON itself, which needs none
            return stored
        except Exception as error:
            raise ValueError(_MISFIT) from error
        if not _holds(self.encode(value), stored):  # a converter would rather make something fit than refuse it
            raise ValueError(_MISFIT)
        return value

    @functools.cached_property
    def _converter(self) -> Converter:
        from cattrs.preconf.json import make_converter

        return make_converter(detailed_validation=False, unstruct_collection_overrides={Set: sorted})


_MISFIT = "what was stored has another form than what the function returns now"


def _returned(function: Callable[..., Any]) -> Any:
    """Returns the type of the values that a function returns, as far as it can be read; else None."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if inspect.isroutine(function) else type(function).__call__
    try:
        return _value_type(_annotation(inspect.unwrap(named)))
    except Exception:  # an annotation may name what is not there at run time
        return None


def _annotation(function: Callable[..., Any]) -> Any:
    """Reads what is returned alone: arguments are often annotated with what only type checkers import."""
    said = SimpleNamespace(__annotations__={"return": function.__annotations__.get("return")})
    around = inspect.getclosurevars(function).nonlocals
    return get_type_hints(said, getattr(function, "__globals__", {}), dict(around)).get("return")


def _value_type(hint: Any) -> Any:
    """Leaves out what is no value: nothing, sentinels, and that it has to be awaited."""
    if get_origin(hint) in (Awaitable, Coroutine):
        return _value_type(get_args(hint)[-1])
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kept = tuple(each for each in members if each is not NoneType and not _is_sentinel(each))
    return functools.reduce(operator.or_, kept) if kept else None  # not Union, which remembers what it was given


def _is_sentinel(hint: Any) -> bool:
    return get_origin(hint) is Literal and set(get_args(hint)) <= {UNAVAILABLE, ABSENT}


def _holds(now: JSON, stored: JSON) -> bool:
    """Whether all that was stored is still there; fields that are new since then may be there too."""
    if isinstance(now, Mapping) and isinstance(stored, Mapping):
        return all(key in now and _holds(now[key], member) for key, member in stored.items())
    if isinstance(now, list) and isinstance(stored, list):
        return len(now) == len(stored) and all(map(_holds, now, stored))
    return same(now, stored)
