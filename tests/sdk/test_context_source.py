"""The decorator turns any function that returns what it observes into a context source that says it well."""

from __future__ import annotations

import enum
import functools
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from opencode_core.context.reconcile import initialize, reconcile
from opencode_core.model.context import ReplacementReady, SnapshotEntry, Updated
from plugin_sdk import (
    ABSENT,
    UNAVAILABLE,
    ContextSource,
    InvalidKeyError,
    Location,
    Unavailable,
    context_source,
    hookimpl,
)
from plugin_sdk.testing import ContextSourceContract, load_plugin
from plugin_sdk.threads import GIVEN_UP
from tests.context.making import observed

if TYPE_CHECKING:
    from nowhere import NotThere  # type: ignore[import-not-found]

HERE = Location(directory=Path("/here"), root=Path("/here"), is_git=False)


@attrs.frozen
class Tool:
    name: str
    version: str = "1"


class Kind(enum.Enum):
    APP = "app"


@attrs.frozen
class Versions:
    python: str
    tools: tuple[Tool, ...] = ()
    tags: frozenset[str] = frozenset()
    kind: Kind = Kind.APP
    day: date = date(2026, 3, 2)


class Everything:
    """A plugin whose source returns as much as an attrs class can hold."""

    @context_source("test/versions")
    @staticmethod
    def versions(location: Location) -> Versions | None:
        """The versions of this project."""
        file = location.directory / "versions.txt"
        if not file.exists():
            return None
        python, *tools = file.read_text().split()
        return Versions(python=python, tools=tuple(Tool(name) for name in tools), tags=frozenset({"web", "api", "cli"}))

    @hookimpl
    def opencode_context_sources(self, location: Location) -> Iterator[ContextSource[Versions]]:
        yield self.versions(location)


class TestAnAttrsClass(ContextSourceContract, plugin=Everything(), key="test/versions"):
    def prepare(self, directory: Path) -> None:
        (directory / "versions.txt").write_text("3.12 ruff mypy")

    def change(self, directory: Path) -> None:
        (directory / "versions.txt").write_text("3.13")

    def take_away(self, directory: Path) -> None:
        (directory / "versions.txt").unlink()


@context_source("test/branch-name")
def plain(location: Location) -> str | None:
    """The git branch.

    More about it.
    """
    return f"main of {location.directory.name}"


def made(function: Callable[..., Any], **settings: Any) -> ContextSource[Any]:
    """Returns the source of a function that takes no arguments."""
    source: ContextSource[Any] = context_source("test/value", **settings)(function)()
    return source


def test_the_default_renderings_say_what_the_docstring_calls_it() -> None:
    source = plain(HERE)
    assert source.baseline("main") == "The git branch: main"
    assert source.update("main", "feature") == "The git branch is now: feature"
    assert source.removed is not None
    assert source.removed("main") == "The git branch: no longer applies."
    assert (source.key, source.required, source.deadline) == ("test/branch-name", True, None)


async def test_a_plain_function_is_called_with_what_the_source_was_made_with() -> None:
    assert await plain(HERE).load() == "main of here"


async def test_a_plain_function_runs_in_a_thread() -> None:
    seen: list[threading.Thread] = []
    await made(lambda: seen.append(threading.current_thread())).load()
    assert seen != [threading.current_thread()]


async def test_an_async_function_runs_where_it_is_awaited() -> None:
    @context_source("test/value")
    async def value(word: str, *, times: int = 1) -> str:
        await anyio.lowlevel.checkpoint()
        return f"{word * times} {threading.current_thread().name}"

    assert await value("x", times=3).load() == f"xxx {threading.current_thread().name}"


async def test_what_a_plain_function_leaves_to_await_is_awaited() -> None:
    async def value() -> str:
        return "later"

    assert await made(lambda: value()).load() == "later"
    assert await made(functools.partial(value)).load() == "later"


@pytest.mark.parametrize(
    ("returned", "loaded"), [(None, ABSENT), (ABSENT, ABSENT), (UNAVAILABLE, UNAVAILABLE), ("", "")]
)
async def test_none_is_nothing_to_tell_and_the_sentinels_stay_what_they_are(returned: Any, loaded: Any) -> None:
    async def later() -> Any:
        return returned

    assert await made(lambda: returned).load() == loaded
    assert await made(later).load() == loaded


@pytest.mark.parametrize(
    ("docstring", "label"),
    [
        ("The branch.", "The branch"),
        ("The branch of v1.2 now", "The branch of v1.2 now"),
        ("The branch that is\n    checked out. It may be new.\n\n    More.", "The branch that is checked out"),
        ("", "branch name"),
        (None, "branch name"),
    ],
)
def test_the_label_is_the_first_sentence_of_the_docstring_or_the_key(docstring: str | None, label: str) -> None:
    def function() -> str:
        return "main"

    function.__doc__ = docstring
    for each in (function, functools.partial(function)):
        assert context_source("test/branch_name")(each)().baseline("main") == f"{label}: main"


def test_a_label_and_renderings_may_be_given() -> None:
    source = made(lambda: "x", label="Mood", update=lambda before, now: f"{before} > {now}", required=False, deadline=2)
    assert source.baseline("good") == "Mood: good"
    assert source.update("good", "better") == "good > better"
    assert (source.required, source.deadline) == (False, 2)
    given = made(lambda: "x", baseline=lambda value: f"<{value}>", removed=lambda value: f"no {value}")
    assert (given.baseline("a"), given.removed and given.removed("a")) == ("<a>", "no a")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("one\ntwo", "Value:\none\ntwo"),
        (3, "Value: 3"),
        (True, "Value: true"),
        ([], "Value: []"),
        ({"b": 1, "a": "é"}, 'Value:\n{\n  "a": "é",\n  "b": 1\n}'),
    ],
)
def test_a_value_is_rendered_in_as_many_lines_as_it_needs_in_the_order_of_its_keys(value: Any, text: str) -> None:
    assert made(lambda: value, label="Value").baseline(value) == text


async def test_an_attrs_class_is_stored_as_json_and_read_back() -> None:
    async with load_plugin(Everything(), directory="/") as plugin:
        source = (await plugin.sources())["test/versions"]
    value = Versions(python="3.12", tools=(Tool("ruff"),), tags=frozenset({"web", "api"}))
    assert source.encode(value) == {
        "python": "3.12",
        "tools": [{"name": "ruff", "version": "1"}],
        "tags": ["api", "web"],
        "kind": "app",
        "day": "2026-03-02",
    }
    assert source.decode(source.encode(value)) == value


def optional() -> Tool | None:
    return None


def sometimes() -> Tool | Unavailable | None:
    return UNAVAILABLE


def several() -> list[Tool]:
    return []


def by_name() -> dict[str, Tool] | None:
    return None


async def later() -> Tool | None:
    return None


def awaitable() -> Awaitable[Tool | None]:
    return later()


def unlike(where: NotThere = None) -> Tool:  # only type checkers know what it is given
    return Tool("x")


class Called:
    def __call__(self) -> Tool:
        return Tool("x")


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (optional, Tool("ruff")),
        (sometimes, Tool("ruff")),
        (several, [Tool("ruff"), Tool("mypy", "2")]),
        (by_name, {"lint": Tool("ruff")}),
        (later, Tool("ruff")),
        (awaitable, Tool("ruff")),
        (unlike, Tool("ruff")),
        (functools.partial(optional), Tool("ruff")),
        (Called(), Tool("ruff")),
    ],
)
def test_the_annotation_says_what_is_read_back(function: Callable[..., Any], value: Any) -> None:
    source = made(function)
    assert source.decode(source.encode(value)) == value


def test_a_class_inside_of_a_function_is_found() -> None:
    @attrs.frozen
    class Local:
        x: int

    def local() -> Local | None:
        return Local(1)

    source = made(local)
    assert source.decode(source.encode(Local(3))) == Local(3)


def test_json_without_an_annotation_is_stored_as_it_is() -> None:
    source = made(lambda: None)
    assert source.decode(source.encode({"a": [1, "b"]})) == {"a": [1, "b"]}


@pytest.mark.parametrize("value", [Tool("x"), [Tool("x")], {"a", "b"}, date(2026, 3, 2)])
def test_what_is_not_json_and_not_annotated_cannot_be_stored(value: Any) -> None:
    with pytest.raises(TypeError, match="which is not JSON, and no annotation of its function says how"):
        made(lambda: value).encode(value)


@pytest.mark.parametrize("value", [float("nan"), {1: "one"}, object()])
def test_what_is_not_json_cannot_be_stored_whatever_the_annotation_says(value: Any) -> None:
    def anything() -> Any:
        return value

    with pytest.raises((TypeError, ValueError)):
        made(anything).encode(value)


def words() -> list[str]:
    return []


def word() -> str:
    return ""


def number() -> int:
    return 0


def union() -> str | int | list[str]:
    return ""


def unique() -> frozenset[str]:
    return frozenset()


def any_object() -> object:
    return ""


@pytest.mark.parametrize(
    ("function", "stored"),
    [
        (optional, {"label": "ruff"}),
        (optional, {"name": "ruff", "removed_since": 1}),
        (optional, {"name": 3}),
        (optional, "ruff"),
        (words, "3.12"),
        (word, 3),
        (word, ["3.12"]),
        (number, "3"),
        (number, True),
        (unique, ["once", "once"]),
    ],
)
def test_what_was_stored_in_another_form_does_not_decode(function: Callable[..., Any], stored: Any) -> None:
    source = made(function)
    with pytest.raises(ValueError, match="what was stored has another form than what the function returns now"):
        source.decode(stored)


def test_a_field_that_is_new_since_it_was_stored_has_its_default() -> None:
    assert made(optional).decode({"name": "ruff"}) == Tool("ruff", "1")


@pytest.mark.parametrize(("function", "stored"), [(union, ["a"]), (union, 3), (any_object, {"a": 1})])
def test_a_type_that_says_no_more_than_json_is_read_back_as_it_is(function: Callable[..., Any], stored: Any) -> None:
    assert made(function).decode(stored) == stored


async def test_a_form_that_changed_begins_anew_and_one_that_grew_is_an_update() -> None:
    source = made(optional, baseline=lambda tool: tool.name, update=lambda before, now: f"{before.name} > {now.name}")
    baseline = initialize(await observed(attrs.evolve(source, load=loads(Tool("ruff", "2")))))
    [entry] = baseline.snapshot.values()
    now = await observed(attrs.evolve(source, load=loads(Tool("mypy"))))
    grown = reconcile(now, {"test/value": SnapshotEntry(value={"name": "ruff"}, removed=entry.removed)})
    assert isinstance(grown, Updated)
    assert grown.text == "ruff > mypy"
    other = reconcile(now, {"test/value": SnapshotEntry(value="ruff", removed=entry.removed)})
    assert isinstance(other, ReplacementReady)
    assert other.because == ("test/value",)


def loads(value: Any) -> Callable[[], Awaitable[Any]]:
    async def load() -> Any:
        return value

    return load


@pytest.mark.parametrize("key", ["branch", "", "Acme/branch", 3])
def test_a_key_without_a_namespace_is_refused_where_it_is_written(key: Any) -> None:
    with pytest.raises(InvalidKeyError):
        context_source(key)


def test_a_function_that_yields_is_refused_where_it_is_written() -> None:
    def values() -> Iterator[str]:
        yield "a"

    async def later() -> Any:
        yield "a"

    for function in (values, later):
        with pytest.raises(TypeError, match=r"'test/value' yields values. Return one value instead."):
            context_source("test/value")(function)


def test_arguments_that_the_function_does_not_take_are_refused_when_the_source_is_made() -> None:
    untyped: Any = plain
    with pytest.raises(TypeError, match="location"):
        untyped()
    with pytest.raises(TypeError, match="too many"):
        untyped(HERE, HERE)


async def test_a_function_that_cannot_be_asked_for_its_arguments_is_called_anyway() -> None:
    source = context_source("test/value")(type)("x")
    assert await source.load() is str


async def test_what_a_function_raises_makes_it_unavailable() -> None:
    def fails() -> str:
        return next(iter(()))

    seen = await observed(made(fails))
    assert seen.unavailable == ("test/value",)


async def test_a_function_that_hangs_is_given_up_and_not_begun_for_ever() -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    def hangs() -> str:
        begun.release()
        release.wait()
        return "done"

    source = made(hangs, deadline=60)
    try:
        for _ in range(GIVEN_UP):
            await give_up(source, begun)
        with pytest.raises(TimeoutError, match=f"{GIVEN_UP} earlier calls of its function have not returned yet"):
            await source.load()
    finally:
        release.set()
    while True:
        try:
            assert await source.load() == "done"
        except TimeoutError:
            await anyio.sleep(0.001)  # until the threads have noticed
        else:
            return


async def give_up(source: ContextSource[Any], begun: threading.Semaphore) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(observed, source)
        await anyio.to_thread.run_sync(begun.acquire)
        tasks.cancel_scope.cancel()


async def test_the_classes_of_a_source_that_is_gone_are_garbage() -> None:
    gone = await class_of_a_source()
    for _ in range(200):  # until the event loop and the thread have let go of what was loaded last
        await anyio.sleep(0.001)
        gc.collect()
        if gone() is None:
            break
    assert gone() is None


async def class_of_a_source() -> weakref.ref[type]:
    """Uses a source as a host does, and returns the class of its values."""

    @attrs.frozen
    class Old:
        x: int

    def old() -> Old | None:
        return Old(1)

    source = made(old)
    value = source.decode(source.encode(await source.load()))
    source.baseline(value)
    return weakref.ref(type(value))
