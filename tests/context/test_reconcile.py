"""Reconciling: one observation leads to exactly one of unchanged, updated, replacement ready or blocked."""

from typing import Any

import attrs
import pytest

from opencode_core.context.reconcile import initialize, reconcile, replace
from opencode_core.errors import EmptyRenderingError, SourceFaultError
from opencode_core.model.context import (
    ABSENT,
    UNAVAILABLE,
    ContextSource,
    ReplacementBlocked,
    ReplacementReady,
    SnapshotEntry,
    Unchanged,
    Updated,
)
from tests.context.making import Loader, observed, removable, source


def told(**entries: Any) -> dict[str, SnapshotEntry]:
    """Return a snapshot of values, or of pairs of a value and a removal text."""
    pairs = {key: value if isinstance(value, tuple) else (value, None) for key, value in entries.items()}
    return {f"test/{key}": SnapshotEntry(value=value, removed=text) for key, (value, text) in pairs.items()}


async def after(snapshot: dict[str, SnapshotEntry], *sources: ContextSource[Any]) -> Any:
    return reconcile(await observed(*sources), snapshot)


@pytest.mark.behaviour("SC-03", "SC-04")
async def test_only_what_changed_is_told_from_the_decoded_value_before_and_the_one_now() -> None:
    rendered: list[tuple[Any, Any]] = []

    def update(before: Any, now: Any) -> str:
        rendered.append((before, now))
        return "b changed"

    snapshot = told(a=("same", "kept although nobody declares it"), b=["1"])
    result = await after(
        snapshot,
        source("test/a", "same"),
        source("test/b", (2,), update=update, encode=lambda value: [str(each) for each in value], decode=tuple),
    )
    assert isinstance(result, Updated)
    assert (result.text, result.parts, rendered) == ("b changed", (("test/b", "b changed"),), [(("1",), (2,))])
    assert result.changed == told(b=["2"])
    assert result.snapshot == {**snapshot, **told(b=["2"])}


@pytest.mark.behaviour("SC-05")
async def test_equal_values_change_nothing() -> None:
    value = {"x": (1, 2.0, True), "y": None}
    stored = {"y": None, "x": [1, 2, True]}
    assert await after(told(a=stored), source("test/a", value)) == Unchanged()


@pytest.mark.parametrize(("before", "now"), [(1, True), (0, False), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("1", 1)])
async def test_values_that_only_python_calls_equal_differ(before: Any, now: Any) -> None:
    assert isinstance(await after(told(a=before), source("test/a", now)), Updated)


@pytest.mark.behaviour("SC-06")
async def test_a_new_source_is_told_by_its_baseline_and_enters_the_snapshot() -> None:
    result = await after(told(a="value"), source("test/a"), removable("test/b", 7))
    assert isinstance(result, Updated)
    assert (result.text, result.removed) == ("test/b is 7", ())
    assert result.snapshot == told(a="value", b=(7, "test/b no longer is 7"))


@pytest.mark.behaviour("SC-07")
async def test_an_admitted_source_that_is_unavailable_changes_nothing_and_blocks_a_replacement() -> None:
    seen = await observed(source("test/a", UNAVAILABLE), source("test/b"))
    snapshot = told(a="old", b="value")
    assert reconcile(seen, snapshot) == Unchanged()
    assert replace(seen, snapshot) == ReplacementBlocked(keys=("test/a",))


@pytest.mark.behaviour("SC-08")
async def test_an_unavailable_source_that_was_never_admitted_is_left_out_of_a_replacement() -> None:
    seen = await observed(source("test/a", UNAVAILABLE), source("test/b"))
    replaced = replace(seen, told(b="value"))
    assert isinstance(replaced, ReplacementReady)
    assert (replaced.baseline.text, replaced.baseline.snapshot) == ("test/b is value", told(b="value"))


async def test_an_unavailable_source_that_was_never_admitted_is_skipped() -> None:
    assert await after(told(b="value"), source("test/a", UNAVAILABLE), source("test/b")) == Unchanged()


@pytest.mark.behaviour("SC-10")
@pytest.mark.parametrize("present", [(), (source("test/a", ABSENT),)], ids=["gone", "absent"])
async def test_a_source_that_is_gone_is_told_by_exactly_the_stored_text(
    present: tuple[ContextSource[Any], ...],
) -> None:
    result = await after(told(a=("old", "A is gone. "), b="value"), *present, source("test/b"))
    assert isinstance(result, Updated)
    assert (result.text, result.removed, result.changed) == ("A is gone. ", ("test/a",), {})
    assert result.snapshot == told(b="value")


@pytest.mark.behaviour("SC-11")
async def test_a_source_that_is_gone_without_a_text_leads_to_a_fresh_baseline() -> None:
    result = await after(told(a="old", b="value"), source("test/b"))
    assert isinstance(result, ReplacementReady)
    assert (result.because, result.baseline.text) == (("test/a",), "test/b is value")


async def test_changes_come_in_composition_order_and_removals_sorted_behind_them() -> None:
    snapshot = told(z=("1", "z is gone"), y=("1", "y is gone"), b="1")
    result = await after(snapshot, source("test/n"), source("test/b", "2"), source("test/a"))
    assert isinstance(result, Updated)
    assert [key for key, _ in result.parts] == ["test/n", "test/b", "test/a", "test/y", "test/z"]
    assert result.text == "\n\n".join(text for _, text in result.parts)
    assert result.removed == ("test/y", "test/z")


@pytest.mark.behaviour("SC-13")
@pytest.mark.parametrize("rendering", ["baseline", "update", "removed"])
async def test_an_empty_rendering_of_a_change_names_the_source_and_the_rendering(rendering: str) -> None:
    snapshot = {} if rendering == "baseline" else told(a="old")
    with pytest.raises(EmptyRenderingError, match=f"The {rendering} rendering of the context source 'test/a'"):
        await after(snapshot, source("test/a", **{rendering: lambda *_values: ""}))


@pytest.mark.parametrize("answer", [None, b"bytes", 7])
async def test_a_rendering_that_is_no_text_names_the_source(answer: Any) -> None:
    with pytest.raises(SourceFaultError, match="'test/a' failed in its 'update' rendering") as caught:
        await after(told(a="old"), source("test/a", update=lambda *_values: answer))
    assert (caught.value.key, caught.value.stage) == ("test/a", "update")


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), {1: "a"}, object(), [b"bytes"]])
async def test_a_value_that_cannot_be_encoded_names_the_source(value: Any) -> None:
    with pytest.raises(SourceFaultError, match="'test/a' could not be encoded") as caught:
        await after({}, source("test/a", value))
    assert (caught.value.key, caught.value.stage) == ("test/a", "encode")


@pytest.mark.behaviour("SC-14", "SC-15", "SC-16")
async def test_a_stored_value_that_no_longer_decodes_leads_to_a_baseline_from_the_same_observation() -> None:
    updates: list[Any] = []
    loaders = [Loader("new"), Loader("new")]

    def update(*values: Any) -> str:
        updates.append(values)
        return "b"

    result = await after(
        told(a="old", b="old"),
        source("test/a", loaders[0], decode=int),
        source("test/b", loaders[1], update=update),
    )
    assert isinstance(result, ReplacementReady)
    assert (result.because, result.baseline.text) == (("test/a",), "test/a is new\n\ntest/b is new")
    assert ([loader.runs for loader in loaders], updates) == ([1, 1], [])


@pytest.mark.behaviour("SC-17")
async def test_an_incompatible_source_and_an_admitted_one_that_is_unavailable_block() -> None:
    seen = await observed(source("test/a", "new", decode=int), source("test/b", UNAVAILABLE))
    snapshot = told(a="old", b="old")
    assert reconcile(seen, snapshot) == ReplacementBlocked(keys=("test/b",), because=("test/a",))
    assert replace(seen, snapshot) == ReplacementBlocked(keys=("test/b",))


async def test_a_replacement_renders_what_a_first_baseline_would() -> None:
    seen = await observed(source("test/a", "1"), removable("test/b", "2"))
    replaced = replace(seen, told(a="0"))
    assert isinstance(replaced, ReplacementReady)
    assert replaced.baseline == initialize(seen)


async def test_a_source_whose_plugin_could_not_be_loaded_is_not_gone_and_blocks_a_replacement() -> None:
    seen = attrs.evolve(await observed(source("test/b", "new", decode=int)), failed=frozenset({"broken"}))
    snapshot = {"test/a": SnapshotEntry(value="old", removed="gone", owner="broken"), **told(b="new")}
    assert reconcile(seen, snapshot) == Unchanged()
    assert replace(seen, snapshot) == ReplacementBlocked(keys=("test/a",))
    assert reconcile(seen, {**snapshot, **told(b="old")}) == ReplacementBlocked(keys=("test/a",), because=("test/b",))
    assert isinstance(reconcile(attrs.evolve(seen, failed=frozenset()), snapshot), Updated)


async def test_a_snapshot_says_whose_each_source_was() -> None:
    seen = await observed(source("test/a"))
    assert initialize(seen).snapshot["test/a"].owner == "tester"
    result = reconcile(seen, told(a="old"))
    assert isinstance(result, Updated)
    assert result.changed["test/a"].owner == "tester"
