"""What holds for any sources, in any order, whatever is available and however it changes."""

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_core.context.compose import compose
from opencode_core.context.observe import observe
from opencode_core.context.reconcile import initialize, reconcile, replace
from opencode_core.model.context import (
    ABSENT,
    UNAVAILABLE,
    ContextSource,
    Observation,
    ReplacementBlocked,
    ReplacementReady,
    SnapshotEntry,
    Unchanged,
    Updated,
)
from opencode_core.plugins.scope import Owner, Registry
from opencode_core.plugins.slots import CONTEXT_SOURCES
from tests.context.making import HERE, source

KEYS = [f"test/{letter}" for letter in "abcdef"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
VALUES = JSON | st.sampled_from([UNAVAILABLE, ABSENT])
WORLDS = st.dictionaries(st.sampled_from(KEYS), VALUES)
"""What is observed at one boundary, by key; a key that is not there has no source."""


def seen(world: dict[str, Any], removable: set[str], strict: frozenset[str] = frozenset()) -> Observation:
    """Return an observation of a world, without running anything."""
    there = {key: value for key, value in sorted(world.items()) if value is not ABSENT}
    sources = tuple(_source(key, key in removable, key in strict) for key in there)
    return Observation(sources=sources, values=there)


def _source(key: str, is_removable: bool, is_strict: bool) -> ContextSource[Any]:
    def decode(stored: Any) -> Any:
        if is_strict and not isinstance(stored, str):
            raise ValueError("it should be text")
        return stored

    removed = (lambda value: f"{key} no longer is {value!r}") if is_removable else None
    return source(key, removed=removed, decode=decode)


def applied(snapshot: dict[str, SnapshotEntry], result: Any) -> dict[str, SnapshotEntry]:
    """Return what the model was told after it was told this."""
    if isinstance(result, Updated):
        return result.snapshot
    return result.baseline.snapshot if isinstance(result, ReplacementReady) else snapshot


REMOVABLE = st.sets(st.sampled_from(KEYS))
STRICT = st.frozensets(st.sampled_from(KEYS))


@given(WORLDS, WORLDS, REMOVABLE, STRICT)
def test_applying_what_came_of_it_leaves_nothing_to_tell(
    before: dict[str, Any], now: dict[str, Any], removable: set[str], strict: frozenset[str]
) -> None:
    snapshot = initialize(seen(_loaded(before), removable)).snapshot
    observation = seen(now, removable, strict)
    result = reconcile(observation, snapshot)
    again = reconcile(observation, applied(snapshot, result))
    assert again == Unchanged() if not isinstance(result, ReplacementBlocked) else again == result


@given(WORLDS, WORLDS, REMOVABLE, STRICT)
def test_reconciling_twice_gives_the_same(
    before: dict[str, Any], now: dict[str, Any], removable: set[str], strict: frozenset[str]
) -> None:
    snapshot = initialize(seen(_loaded(before), removable)).snapshot
    observation = seen(now, removable, strict)
    assert reconcile(observation, snapshot) == reconcile(observation, snapshot)
    assert replace(observation, snapshot) == replace(observation, snapshot)


@given(WORLDS, WORLDS, REMOVABLE)
def test_what_is_unavailable_is_never_told_and_never_forgotten(
    before: dict[str, Any], now: dict[str, Any], removable: set[str]
) -> None:
    snapshot = initialize(seen(_loaded(before), removable)).snapshot
    result = reconcile(seen(now, removable), snapshot)
    hidden = {key for key, value in now.items() if value is UNAVAILABLE}
    after = applied(snapshot, result)
    assert all(after.get(key) == snapshot.get(key) for key in hidden)
    if isinstance(result, Updated):
        assert hidden.isdisjoint(key for key, _ in result.parts)


@given(WORLDS, WORLDS, REMOVABLE)
def test_an_update_tells_exactly_what_differs(before: dict[str, Any], now: dict[str, Any], removable: set[str]) -> None:
    snapshot = initialize(seen(_loaded(before), set(KEYS))).snapshot  # all can be taken back, so none forces a baseline
    observation = seen(now, removable)
    result = reconcile(observation, snapshot)
    gone = {key for key in snapshot if key not in observation.values}
    known = {key: value for key, value in observation.values.items() if value is not UNAVAILABLE}
    differing = {key for key in known if key not in snapshot or _dumped(known[key]) != _dumped(snapshot[key].value)}
    told = {key for key, _ in result.parts} if isinstance(result, Updated) else set()
    assert told == gone | differing
    assert isinstance(result, (Updated, Unchanged))


@given(st.lists(st.sampled_from(["up", "down"]), min_size=1, max_size=12), st.lists(st.integers(0, 2), min_size=12))
def test_a_source_that_was_unavailable_for_any_stretch_is_told_at_most_once_when_it_returns(
    availability: list[str], values: list[int]
) -> None:
    snapshot = initialize(seen({"test/a": 0}, {"test/a"})).snapshot
    told_value, updates = 0, 0
    for state, value in zip(availability, values, strict=False):
        result = reconcile(seen({"test/a": value if state == "up" else UNAVAILABLE}, {"test/a"}), snapshot)
        if state == "down":
            assert result == Unchanged()
        else:
            assert isinstance(result, Updated) == (value != told_value)
            updates += isinstance(result, Updated)
            told_value = value
        snapshot = applied(snapshot, result)
    assert updates <= availability.count("up")


@given(st.permutations(range(5)), WORLDS, WORLDS, REMOVABLE)
@settings(max_examples=60)
def test_the_order_of_registration_never_shows(
    order: list[int], before: dict[str, Any], now: dict[str, Any], removable: set[str]
) -> None:
    owners = [Owner("date", "core"), Owner("zeta"), Owner("acme"), Owner("environment", "core"), Owner("mid")]
    keys = dict(zip(owners, (["test/a", "test/f"], ["test/b"], ["test/c"], ["test/d"], ["test/e"]), strict=True))

    async def observed(world: dict[str, Any], registered: list[Owner]) -> Observation:
        scope = Registry().open()
        for owner in registered:
            there = tuple(
                source(key, world[key], removed=(lambda value: f"no {value!r}") if key in removable else None)
                for key in keys[owner]
                if key in world
            )
            if there:
                claims = tuple(each.key for each in there)
                scope.attach(owner).add(CONTEXT_SOURCES, owner.key, there, claims=claims)
        composed = await compose(scope.read())
        found = await observe(composed, HERE)
        await scope.aclose()
        return found

    def story(registered: list[Owner]) -> Any:
        baseline = initialize(anyio.run(observed, _loaded(before), registered))
        return baseline, reconcile(anyio.run(observed, now, registered), baseline.snapshot)

    assert story(owners) == story([owners[place] for place in order])


def _loaded(world: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in world.items() if value is not UNAVAILABLE}


def _dumped(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    if isinstance(value, (int, float)):
        return f"number {int(value) if float(value).is_integer() else value!r}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key!r}:{_dumped(value[key])}' for key in sorted(value))}}}"
    return f"[{','.join(_dumped(each) for each in value)}]"
