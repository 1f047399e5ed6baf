"""Turns a function of a Location into a context source with sensible renderings. Registers nothing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

import attrs

from opencode_core.model.context import ABSENT, Absent, ContextSource, Unavailable
from opencode_core.model.keys import check_source_key
from plugin_sdk.threads import BoundedThreads

__all__ = ["SourceDecorator", "SourceFactory", "context_source"]

P = ParamSpec("P")
T = TypeVar("T")


class SourceDecorator(Protocol):
    """Makes a context source of a function, async or plain; what it may return besides a value is no part of it."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T | Unavailable | Absent | None]], /
    ) -> SourceFactory[P, T]: ...

    @overload
    def __call__(self, function: Callable[P, T | Unavailable | Absent | None], /) -> SourceFactory[P, T]: ...


@attrs.frozen(eq=False, repr=False)
class SourceFactory(Generic[P, T]):
    """Makes a context source for the arguments that the function is to be called with, such as a Location.

    Attributes:
        key: The key of each of them.
    """

    key: str
    _function: Callable[P, Any]
    _label: str
    _fields: dict[str, Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ContextSource[T]:
        """Returns the source.

        Raises:
            TypeError: The function cannot be called with these arguments.
        """
        from plugin_sdk.source_values import codec_of, labelled

        _refuse_misfits(self._function, *args, **kwargs)
        codec, threads, label = codec_of(self._function), BoundedThreads(), self._label

        async def load() -> Any:
            value = await _called(threads, self._function, *args, **kwargs)
            return ABSENT if value is None else value

        fields: dict[str, Any] = {
            "baseline": lambda value: labelled(label, codec.encode(value)),
            "update": lambda _before, value: labelled(f"{label} is now", codec.encode(value)),
            "removed": lambda _value: f"{label}: no longer applies.",
            **self._fields,
        }
        return ContextSource(key=self.key, load=load, encode=codec.encode, decode=codec.decode, **fields)


def context_source(
    key: str,
    *,
    label: str = "",
    baseline: Callable[[Any], str] | None = None,
    update: Callable[[Any, Any], str] | None = None,
    removed: Callable[[Any], str] | None = None,
    required: bool = True,
    deadline: float | None = None,
) -> SourceDecorator:
    """Makes a context source of a function that returns what it observes.

    The function is called at every boundary with what the source was made with. It is async, or plain: then it runs in
    a thread, so it may read files and wait for programs. It returns text, any other JSON, or an attrs class that its
    annotation names; ``None`` when there is nothing to tell, and ``UNAVAILABLE`` when that cannot be said now.

    Args:
        key: Stable and namespaced, such as ``acme/branch``.
        label: What the value is called in the renderings; by default the first sentence of the function's docstring.
        baseline: Renders the value instead of ``label: value``.
        update: Renders a change instead of ``label is now: value``.
        removed: Renders that it is gone instead of ``label: no longer applies.``
        required: Whether a first baseline waits for it; otherwise it is told when it is first there.
        deadline: How many seconds the function may take; None for as long as the host allows.

    Raises:
        InvalidKeyError: The key has no namespace.
        TypeError: The function yields instead of returning.
    """
    check_source_key(key)
    renderings = {"baseline": baseline, "update": update, "removed": removed}
    fields = {"required": required, "deadline": deadline, **{name: each for name, each in renderings.items() if each}}

    def decorate(function: Callable[..., Any]) -> SourceFactory[Any, Any]:
        _refuse_generators(key, function)
        name = label or _first_sentence(function) or key.partition("/")[2].replace("-", " ").replace("_", " ")
        return SourceFactory(key, function, name, fields)

    return decorate


async def _called(threads: BoundedThreads, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    answer = await threads.run(functools.partial(function, *args, **kwargs))
    return await answer if inspect.isawaitable(answer) else answer


def _refuse_generators(key: str, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"The function of the context source '{key}' yields values. Return one value instead.")


def _refuse_misfits(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some things that can be called do not say how
        return
    signature.bind(*args, **kwargs)  # now and not at every turn, so that the hook is told


def _first_sentence(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):  # its own docstring is about partials
        function = function.func
    paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")
