"""Previewing a first baseline: all that can be told is shown, and what cannot be is named with its reason."""

from typing import Any

import pytest

from opencode_core.context.preview import Preview, preview
from opencode_core.context.reconcile import initialize
from opencode_core.model.context import ABSENT, UNAVAILABLE
from tests.context.making import observed, source


def fails(_value: Any) -> str:
    raise ValueError("no")


def states(found: Preview) -> dict[str, tuple[str, str]]:
    return {each.key: (each.state, each.reason) for each in found.sources}


async def test_a_complete_baseline_is_exactly_what_a_session_would_get() -> None:
    observation = await observed(source("test/b"), source("test/a", "é世"))
    found = preview(observation)
    assert found.text == initialize(observation).text == "test/b is value\n\ntest/a is é世"
    assert [(each.key, each.owner, each.text) for each in found.sources] == [
        ("test/b", "tester", "test/b is value"),
        ("test/a", "tester", "test/a is é世"),
    ]
    assert (found.missing, found.blocked) == ((), ())


async def test_what_is_unavailable_is_named_and_hides_nothing_else() -> None:
    found = preview(await observed(source("test/a", UNAVAILABLE), source("test/b", OSError("disk")), source("test/c")))
    assert states(found) == {
        "test/a": ("unavailable", "it is unavailable now"),
        "test/b": ("unavailable", "it raised OSError: disk"),
        "test/c": ("told", ""),
    }
    assert (found.blocked, found.text) == (("test/a", "test/b"), "test/c is value")


async def test_a_first_turn_does_not_wait_for_what_is_not_required() -> None:
    found = preview(await observed(source("test/a", UNAVAILABLE, required=False), source("test/b")))
    assert (found.blocked, [each.key for each in found.missing]) == ((), ["test/a"])


@pytest.mark.parametrize("required", [True, False])
async def test_a_source_that_cannot_be_rendered_or_encoded_says_so(required: bool) -> None:
    found = preview(
        await observed(
            source("test/a", baseline=fails, required=required),
            source("test/b", baseline=lambda _value: "", required=required),
            source("test/c", object(), required=required),
            source("test/d"),
        )
    )
    assert [(each.key, each.state) for each in found.missing] == [
        ("test/a", "faulty"),
        ("test/b", "faulty"),
        ("test/c", "faulty"),
    ]
    assert "failed in its 'baseline' rendering: ValueError: no" in found.missing[0].reason
    assert found.missing[1].reason == "The baseline rendering of the context source 'test/b' is empty."
    assert "could not be encoded" in found.missing[2].reason
    assert found.blocked == (("test/a", "test/b", "test/c") if required else ())
    assert found.text == "test/d is value"


async def test_a_source_with_nothing_to_tell_is_absent_and_not_missing() -> None:
    found = preview(await observed(source("test/a", ABSENT), source("test/b")))
    assert [(each.key, each.state, each.owner) for each in found.sources] == [
        ("test/b", "told", "tester"),
        ("test/a", "absent", "tester"),
    ]
    assert found.missing == ()
