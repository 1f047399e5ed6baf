"""The first baseline: every source is observed once and rendered in order, or nothing is made at all."""

from collections.abc import Callable
from typing import Any

import pytest

from opencode_core.context.observe import observe
from opencode_core.context.reconcile import initialize
from opencode_core.errors import DuplicateKeyError, EmptyRenderingError, InitializationBlockedError, InvalidKeyError
from opencode_core.model.context import ABSENT, UNAVAILABLE, Baseline, SnapshotEntry, SystemContext, combine
from tests.context.making import HERE, Loader, context, source


async def initialized(composed: SystemContext) -> Baseline:
    return initialize(await observe(composed, HERE))


@pytest.mark.behaviour("SC-02")
async def test_a_baseline_is_every_text_in_order_and_one_snapshot_entry_per_key() -> None:
    first, second = Loader({"day": 1}), Loader("here")
    baseline = await initialized(
        context(
            source("test/z", load=first, baseline=lambda value: "First.", removed=lambda value: f"Was {value['day']}."),
            source("test/a", load=second, baseline=lambda value: "Second."),
        )
    )
    assert baseline.text == "First.\n\nSecond."
    assert baseline.parts == (("test/z", "First."), ("test/a", "Second."))
    assert baseline.snapshot == {
        "test/z": SnapshotEntry(value={"day": 1}, removed="Was 1."),
        "test/a": SnapshotEntry(value="here", removed=None),
    }
    assert (first.runs, second.runs) == (1, 1)


async def test_the_snapshot_keeps_the_encoded_value() -> None:
    baseline = await initialized(context(source("test/a", (1, 2), encode=list)))
    assert baseline.snapshot["test/a"].value == [1, 2]


@pytest.mark.behaviour("SC-09")
async def test_unavailable_sources_block_the_first_baseline_and_all_are_named() -> None:
    rendered: list[str] = []

    def baseline(value: str) -> str:
        rendered.append(value)
        return value

    composed = context(
        source("test/z", UNAVAILABLE),
        source("test/here", baseline=baseline),
        source("test/a", UNAVAILABLE),
    )
    with pytest.raises(
        InitializationBlockedError, match=r"'test/z' of the plugin 'tester' .*, 'test/a' of the plugin 'tester'"
    ) as caught:
        await initialized(composed)
    assert (caught.value.keys, rendered) == (("test/z", "test/a"), [])


@pytest.mark.behaviour("SC-13")
@pytest.mark.parametrize("rendering", ["baseline", "removed"])
async def test_an_empty_rendering_names_the_source_and_which_rendering_it_was(rendering: str) -> None:
    empty: dict[str, Callable[[Any], str]] = {rendering: lambda value: ""}
    with pytest.raises(
        EmptyRenderingError, match=f"The {rendering} rendering of the context source 'test/a'"
    ) as caught:
        await initialized(context(source("test/a", **empty)))
    assert (caught.value.key, caught.value.rendering) == ("test/a", rendering)


@pytest.mark.behaviour("SC-18")
def test_duplicate_keys_fail_when_contexts_are_combined_and_nothing_is_loaded() -> None:
    loader = Loader("value")
    twice = SystemContext((source("test/a", load=loader),))
    with pytest.raises(DuplicateKeyError, match="The context source key 'test/a' is contributed twice") as caught:
        combine(twice, SystemContext((source("test/b"),)), twice)
    assert (caught.value.key, loader.runs) == ("test/a", 0)


@pytest.mark.behaviour("SC-18")
def test_duplicate_keys_within_one_context_fail_too() -> None:
    with pytest.raises(DuplicateKeyError):
        combine(SystemContext((source("test/a"), source("test/a"))))


@pytest.mark.behaviour("SC-19")
async def test_the_order_in_which_contexts_are_combined_is_the_order_of_the_text() -> None:
    one, two = SystemContext((source("test/b"), source("test/a"))), SystemContext((source("test/0"),))
    forward, backward = await initialized(combine(one, two)), await initialized(combine(two, one))
    assert [key for key, _text in forward.parts] == ["test/b", "test/a", "test/0"]
    assert [key for key, _text in backward.parts] == ["test/0", "test/b", "test/a"]


@pytest.mark.behaviour("SC-20")
@pytest.mark.parametrize("key", ["date", "", "/date", "core/", "Core/date", "core//date", "core/da te", "core/d\n", 7])
def test_a_key_without_a_namespace_or_outside_the_grammar_is_rejected(key: Any) -> None:
    with pytest.raises(InvalidKeyError):
        source(key)


@pytest.mark.parametrize("key", ["core/date", "a/b/c", "a.b/c_d", "0/1", "my-plugin/x.y-z_0"])
def test_a_key_of_the_grammar_is_accepted(key: str) -> None:
    assert source(key).key == key


async def test_an_optional_source_that_is_unavailable_is_left_out_of_the_first_baseline() -> None:
    baseline = await initialized(context(source("test/a"), source("test/b", UNAVAILABLE, required=False)))
    assert (baseline.text, list(baseline.snapshot)) == ("test/a is value", ["test/a"])


async def test_an_absent_source_is_left_out_of_the_first_baseline() -> None:
    baseline = await initialized(context(source("test/a", ABSENT), source("test/b")))
    assert (baseline.text, list(baseline.snapshot)) == ("test/b is value", ["test/b"])
