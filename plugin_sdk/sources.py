"""Turns a function of a Location into a context source with sensible renderings. Registers nothing."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

import anyio.to_thread
import attrs

from opencode_core.model.context import ABSENT, ContextSource
from opencode_core.model.json import JSON
from opencode_core.model.keys import check_source_key

__all__ = ["SourceFactory", "context_source"]

P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen(eq=False, repr=False)
class SourceFactory(Generic[P, T]):
    """Makes a context source for the arguments that the function is called with, such as a Location."""

    _function: Callable[P, Any]
    _fields: dict[str, Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ContextSource[T]:
        """Returns the source."""

        async def load() -> Any:
            value = await _called(self._function, args, kwargs)
            return ABSENT if value is None else value

        return ContextSource(load=load, **self._fields)


def context_source(
    key: str,
    *,
    label: str = "",
    baseline: Callable[[Any], str] | None = None,
    update: Callable[[Any, Any], str] | None = None,
    removed: Callable[[Any], str] | None = None,
    required: bool = True,
    deadline: float | None = None,
) -> Callable[[Callable[P, Awaitable[T] | T]], SourceFactory[P, Any]]:
    """Makes a context source of a function that returns what it observes.

    The function is called at every boundary with what the source was made with. It is async, or plain: then it runs in
    a thread, so it may read files and wait for programs. It returns text, any other JSON, or an attrs class that its
    annotation names; ``None`` when there is nothing to tell, and ``UNAVAILABLE`` when that cannot be said now.

    Args:
        key: Stable and namespaced, such as ``acme/branch``.
        label: What the value is called in the renderings; by default the first line of the function's docstring.
        baseline: Renders the value instead of ``label: value``.
        update: Renders a change instead of ``label is now: value``.
        removed: Renders that it is gone instead of ``label: no longer applies.``
        required: Whether a first baseline waits for it; otherwise it is told when it is first there.
        deadline: How many seconds the function may take; None for as long as the host allows.

    Raises:
        InvalidKeyError: The key has no namespace.
    """
    check_source_key(key)

    def decorate(function: Callable[P, Awaitable[T] | T]) -> SourceFactory[P, Any]:
        name = label or _first_line(function) or key.partition("/")[2].replace("-", " ").replace("_", " ")
        fields: dict[str, Any] = {
            "key": key,
            "baseline": baseline or (lambda value: _labelled(name, value)),
            "update": update or (lambda _before, value: _labelled(f"{name} is now", value)),
            "removed": removed or (lambda _value: f"{name}: no longer applies."),
            "required": required,
            "deadline": deadline,
            **_codec(function),
        }
        return SourceFactory(function, fields)

    return decorate


async def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    answer = await anyio.to_thread.run_sync(lambda: function(*args, **kwargs), abandon_on_cancel=True)
    return await answer if inspect.isawaitable(answer) else answer


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0].strip().rstrip(".")


def _labelled(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(_unstructured(value), indent=2, ensure_ascii=False)
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _codec(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns how an attrs class is stored; what the function is not annotated with is stored as it is."""
    kind = _returned(function)
    if kind is None:
        return {"encode": _unstructured}

    def decode(stored: JSON) -> Any:
        from cattrs import Converter

        # One converter each time: a shared one would keep the classes of old generations alive in its caches.
        return Converter(forbid_extra_keys=True).structure(stored, kind)

    return {"encode": _unstructured, "decode": decode}


def _unstructured(value: Any) -> Any:
    if not attrs.has(type(value)):
        return value
    from cattrs import Converter

    return Converter().unstructure(value)


def _returned(function: Callable[..., Any]) -> type | None:
    try:
        hint = get_type_hints(function).get("return")
    except Exception:  # an annotation may name what is not there at run time
        return None
    candidates = [each for each in (hint, *getattr(hint, "__args__", ())) if isinstance(each, type) and attrs.has(each)]
    return candidates[0] if candidates else None
