"""Replayed states: what readers hold is the result of the transforms, in the order of their keys."""

# ruff: noqa: PT012 -- what a batch raises, it raises when its block ends

import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from opencode_core.errors import DuplicateKeyError, OpencodeError
from opencode_core.plugins.replay import Key, Registration, Replayed, batch

pytestmark = pytest.mark.anyio

Words: TypeAlias = Replayed[list[str], list[str]]


class Refused(Exception):
    """What a broken transform raises."""


def words(on_change: Callable[[list[str]], object] | None = None) -> Words:
    return Replayed(list, list, on_change)


def says(word: str) -> Callable[[list[str]], object]:
    return lambda draft: draft.append(word)


def fails(draft: list[str]) -> None:
    draft.append("half done")
    raise Refused


@attrs.define
class Gate:
    """A transform that waits inside a rebuild until it is opened."""

    word: str = "gate"
    reached: anyio.Event = attrs.field(factory=anyio.Event)
    opened: anyio.Event = attrs.field(factory=anyio.Event)

    async def __call__(self, draft: list[str]) -> None:
        self.reached.set()
        await self.opened.wait()
        draft.append(self.word)


# Registering


async def test_a_state_without_transforms_is_the_finished_initial_draft() -> None:
    state = words()
    assert state.current == []
    assert state.revision == 0


async def test_registering_rebuilds_before_it_returns() -> None:
    state = words()
    await state.add("a", says("hello"), owner="me")
    assert state.current == ["hello"]
    assert state.revision == 1


async def test_transforms_run_in_the_order_of_their_keys_not_of_their_registration() -> None:
    state = words()
    keys: list[Key] = ["b", ("a", 10), (2, "z"), ("a", 9), "a", (2, 1), ("a", "x")]
    for key in keys:
        await state.add(key, says(str(key)), owner="me")
    ordered: list[Key] = [(2, 1), (2, "z"), "a", ("a", 9), ("a", 10), ("a", "x"), "b"]
    assert state.current == [str(key) for key in ordered]


async def test_an_async_transform_is_awaited_before_the_next_one_runs() -> None:
    state = words()

    async def slow(draft: list[str]) -> None:
        await checkpoint()
        draft.append("slow")

    await state.add("b", says("after"), owner="me")
    await state.add("a", slow, owner="me")
    assert state.current == ["slow", "after"]


async def test_a_duplicate_key_names_both_owners_and_the_first_stays() -> None:
    state = words()
    await state.add("a", says("first"), owner="early")
    with pytest.raises(DuplicateKeyError, match=r"'a'.*'early'.*'late'") as caught:
        await state.add(("a",), says("second"), owner="late")
    assert caught.value.owners == ("early", "late")
    assert state.current == ["first"]
    assert state.revision == 1


async def test_a_transform_that_raises_is_not_kept_and_the_old_state_stays() -> None:
    state = words()
    await state.add("a", says("kept"), owner="me")
    before = state.current
    with pytest.raises(Refused):
        await state.add("b", fails, owner="me")
    assert state.current is before
    await state.reload()
    assert state.current == ["kept"]


async def test_the_error_of_a_transform_is_noted_with_its_key_and_owner() -> None:
    with pytest.raises(Refused) as caught:
        await words().add(("x", 1), fails, owner="culprit")
    assert caught.value.__notes__ == ["In the transform 'x/1' of 'culprit'."]


async def test_a_finish_that_raises_leaves_the_old_state_and_keeps_nothing() -> None:
    def finish(draft: list[str]) -> list[str]:
        if "bad" in draft:
            raise Refused
        return draft

    state = Replayed(list, finish)
    with pytest.raises(Refused):
        await state.add("a", says("bad"), owner="me")
    await state.add("a", says("good"), owner="me")
    assert state.current == ["good"]


async def test_every_rebuild_starts_from_a_fresh_draft() -> None:
    drafts: list[list[str]] = []
    state: Replayed[list[str], list[str]] = Replayed(list, lambda draft: draft)
    await state.add("a", drafts.append, owner="me")
    held = state.current
    await state.add("b", says("later"), owner="me")
    assert drafts[0] is not drafts[1]
    assert held == []


# Being cancelled


@pytest.mark.behaviour("ST-01")
async def test_a_registration_cancelled_during_its_rebuild_commits_and_stays_until_its_scope_closes() -> None:
    state, gate = words(), Gate("late")
    went_on: list[str] = []

    async def register(scope: AsyncExitStack) -> None:
        registration = await state.add("a", gate, owner="me")
        scope.push_async_callback(registration.close)
        await checkpoint()
        went_on.append("past its cancellation")

    async with AsyncExitStack() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(register, scope)
            await gate.reached.wait()
            tasks.cancel_scope.cancel()
            gate.opened.set()
        assert state.current == ["late"]
        assert went_on == []
    assert state.current == []


async def test_a_registration_cancelled_before_its_rebuild_began_leaves_nothing() -> None:
    state, gate = words(), Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add, state, "a", gate)
        await gate.reached.wait()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await state.add("b", says("never"), owner="me")
        gate.opened.set()
    await state.reload()
    assert state.current == ["gate"]


async def test_a_registration_can_be_closed_while_its_task_is_cancelled() -> None:
    state, gate = words(), Gate()
    registration = await state.add("a", says("old"), owner="me")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add, state, "b", gate)
        await gate.reached.wait()
        with anyio.CancelScope() as scope:
            scope.cancel()
            tasks.start_soon(open_when_all_wait, gate)
            await registration.close()
    assert state.current == ["gate"]


async def open_when_all_wait(gate: Gate) -> None:
    await anyio.wait_all_tasks_blocked()
    gate.opened.set()


async def add(state: Words, key: Key, transform: Callable[[list[str]], object]) -> None:
    await state.add(key, transform, owner="me")


# Closing


@pytest.mark.behaviour("ST-03")
async def test_closing_one_of_two_rebuilds_from_the_rest_and_closing_it_twice_is_harmless() -> None:
    state = words()
    first = await state.add("a", says("first"), owner="me")
    await state.add("b", says("second"), owner="me")
    await first.close()
    assert state.current == ["second"]
    await first.close()
    assert state.current == ["second"]
    assert state.revision == 3


async def test_the_key_of_a_closed_registration_can_be_taken_and_the_old_handle_does_not_touch_it() -> None:
    state = words()
    first = await state.add("a", says("first"), owner="me")
    await first.close()
    await state.add("a", says("second"), owner="you")
    await first.close()
    assert state.current == ["second"]


async def test_a_close_whose_rebuild_fails_raises_keeps_the_old_state_and_still_removes_the_transform() -> None:
    state = words()
    broken: list[bool] = []
    closing = await state.add("a", says("closing"), owner="me")
    await state.add("b", lambda draft: fails(draft) if broken else draft.append("other"), owner="me")
    broken.append(True)
    with pytest.raises(Refused):
        await closing.close()
    assert state.current == ["closing", "other"]
    assert closing.closed
    broken.clear()
    await state.reload()
    assert state.current == ["other"]


async def test_a_transform_closed_during_another_rebuild_is_gone_afterwards() -> None:
    state, gate = words(), Gate()
    closing = await state.add("a", says("closing"), owner="me")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add, state, "b", gate)
        await gate.reached.wait()
        tasks.start_soon(closing.close)
        await anyio.wait_all_tasks_blocked()
        gate.opened.set()
    assert state.current == ["gate"]


@attrs.define(eq=False)
class Says:
    """A transform whose memory can be watched."""

    word: str

    def __call__(self, draft: list[str]) -> None:
        draft.append(self.word)


async def test_a_closed_transform_is_let_go_even_when_the_rebuild_fails() -> None:
    state = words()
    broken: list[bool] = []
    transform = Says("closing")
    watched = weakref.ref(transform)
    closing = await state.add("a", transform, owner="me")
    await state.add("b", lambda draft: fails(draft) if broken else None, owner="me")
    broken.append(True)
    with pytest.raises(Refused):
        await closing.close()
    del transform
    gc.collect()
    assert watched() is None


# Replacing and changing


async def test_replacing_keeps_the_place_and_the_registration() -> None:
    state = words()
    await state.add("c", says("last"), owner="me")
    middle = await state.add("b", says("middle"), owner="me")
    await state.add("a", says("first"), owner="me")
    await state.replace("b", says("new"))
    assert state.current == ["first", "new", "last"]
    await middle.close()
    assert state.current == ["first", "last"]


async def test_a_replacement_that_raises_leaves_the_old_transform_in_place() -> None:
    state = words()
    await state.add("a", says("old"), owner="me")
    with pytest.raises(Refused):
        await state.replace("a", fails)
    await state.reload()
    assert state.current == ["old"]


async def test_replacing_what_is_not_there_is_an_error() -> None:
    state = words()
    closed = await state.add("a", says("a"), owner="me")
    await closed.close()
    with pytest.raises(LookupError, match="'a'"):
        await state.replace("a", says("new"))


async def test_a_change_removes_and_adds_several_with_one_rebuild() -> None:
    seen: list[list[str]] = []
    state = words(seen.append)
    await state.change(add={"a": says("a1"), "b": says("b1"), "c": says("c1")}, owner="old")
    added = await state.change(remove=["a", "b"], add={"a": says("a2"), "d": says("d2")}, owner="new")
    assert seen == [["a1", "b1", "c1"], ["a2", "c1", "d2"]]
    assert {key: registration.owner for key, registration in added.items()} == {"a": "new", "d": "new"}


async def test_a_change_that_names_one_key_twice_removes_it_once() -> None:
    state = words()
    await state.change(add={"a": says("a"), "b": says("b")}, owner="me")
    await state.change(remove=["a", ("a",)], add={}, owner="me")
    assert state.current == ["b"]


@pytest.mark.parametrize(
    ("remove", "add", "error"),
    [
        pytest.param(["a"], {"c": says("c"), "d": fails}, Refused, id="a transform raises"),
        pytest.param(["a"], {"c": says("c"), "b": says("b")}, DuplicateKeyError, id="a key is taken"),
        pytest.param(["a", "z"], {"c": says("c")}, LookupError, id="nothing to remove"),
        pytest.param(["a"], {"c": says("c"), ("c",): says("c")}, DuplicateKeyError, id="one key twice"),
    ],
)
async def test_a_change_that_fails_changes_nothing(
    remove: list[Key], add: dict[Key, Callable[[list[str]], object]], error: type[Exception]
) -> None:
    state = words()
    for key in "ab":
        await state.add(key, says(key), owner="me")
    with pytest.raises(error):
        await state.change(remove=remove, add=add, owner="me")
    assert state.current == ["a", "b"]
    await state.reload()
    assert state.current == ["a", "b"]


async def test_the_registration_of_a_removed_transform_is_closed_without_another_rebuild() -> None:
    state = words()
    old = await state.add("a", says("old"), owner="me")
    await state.change(remove=["a"], add={"a": says("new")}, owner="me")
    assert old.closed
    await old.close()
    assert state.current == ["new"]
    assert state.revision == 2


async def test_the_registrations_that_a_failed_change_would_have_removed_still_work() -> None:
    state = words()
    old = await state.add("a", says("old"), owner="me")
    with pytest.raises(Refused):
        await state.change(remove=["a"], add={"a": fails}, owner="me")
    await old.close()
    assert state.current == []


# Reloading


@pytest.mark.behaviour("ST-02")
async def test_an_effectful_transform_runs_again_on_reload_and_sees_new_captured_values() -> None:
    state = words()
    captured = {"word": "before"}

    async def effectful(draft: list[str]) -> None:
        await checkpoint()
        draft.append(captured["word"])

    await state.add("a", effectful, owner="me")
    captured["word"] = "after"
    assert state.current == ["before"]
    await state.reload()
    assert state.current == ["after"]


# Telling


async def test_a_change_is_told_after_the_new_state_is_visible() -> None:
    told: list[tuple[list[str], list[str], int]] = []
    state = words(lambda current: told.append((current, state.current, state.revision)))
    await state.add("a", says("a"), owner="me")
    assert told == [(["a"], ["a"], 1)]


async def test_a_rebuild_that_failed_is_not_told() -> None:
    told: list[list[str]] = []
    state = words(told.append)
    with pytest.raises(Refused):
        await state.add("a", fails, owner="me")
    assert told == []


async def test_the_handle_is_returned_even_when_the_one_who_is_told_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told(current: object) -> None:
        raise Refused

    state = words(told)
    registration = await state.add("a", says("a"), owner="me")
    assert state.current == ["a"]
    assert "Refused" in caplog.text
    await registration.close()
    assert state.current == []


# One rebuild at a time


async def test_rebuilds_are_serialised_and_none_is_left_out() -> None:
    running, most, told = 0, 0, list[list[str]]()

    async def counted(draft: list[str]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await checkpoint()
        running -= 1

    state = words(told.append)
    await state.add("0", counted, owner="me")
    async with anyio.create_task_group() as tasks:
        for number in range(1, 6):
            tasks.start_soon(add, state, str(number), says(str(number)))
    assert most == 1
    assert [len(current) for current in told] == [0, 1, 2, 3, 4, 5]


async def close_own(state: Words, registration: Registration) -> None:
    await registration.close()


async def add_own(state: Words, registration: Registration) -> None:
    await state.add("new", says("new"), owner="me")


async def reload_own(state: Words, registration: Registration) -> None:
    await state.reload()


async def add_own_in_a_batch(state: Words, registration: Registration) -> None:
    async with batch(state):
        await state.add("new", says("new"), owner="me")


async def add_own_from_a_task(state: Words, registration: Registration) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_own, state, registration)


async def add_own_by_way_of_another_state(state: Words, registration: Registration) -> None:
    async def back(draft: list[str]) -> None:
        await add_own(state, registration)

    await words().add("way", back, owner="me")


@pytest.mark.parametrize(
    "act",
    [
        close_own,
        add_own,
        reload_own,
        add_own_in_a_batch,
        add_own_from_a_task,
        add_own_by_way_of_another_state,
    ],
)
async def test_a_transform_that_registers_on_its_own_state_is_refused_instead_of_waiting_for_itself(
    act: Callable[[Words, Registration], Awaitable[None]],
) -> None:
    state = words()
    other = await state.add("other", says("other"), owner="me")

    async def transform(draft: list[str]) -> None:
        await act(state, other)

    with anyio.fail_after(5), pytest.raises((OpencodeError, ExceptionGroup)) as caught:
        await state.add("own", transform, owner="me")
    raised = caught.value
    while isinstance(raised, ExceptionGroup):
        [raised] = raised.exceptions
    assert "that it is rebuilding" in str(raised)
    await state.reload()
    assert state.current == ["other"]


async def test_a_transform_may_register_on_another_state() -> None:
    state, other = words(), words()

    async def transform(draft: list[str]) -> None:
        await other.add(str(other.revision), says("from afar"), owner="me")

    await state.add("a", transform, owner="me")
    assert other.current == ["from afar"]


async def test_a_task_that_a_transform_started_may_register_once_the_rebuild_is_over() -> None:
    state = words()
    over = anyio.Event()

    async def later() -> None:
        await over.wait()
        await state.add("later", says("later"), owner="me")

    def start(draft: list[str]) -> None:
        tasks.start_soon(later)

    async with anyio.create_task_group() as tasks:
        registration = await state.add("start", start, owner="me")
        await state.replace("start", says("started"))
        over.set()
    assert state.current == ["later", "started"]
    assert not registration.closed


# Batches


@pytest.mark.behaviour("ST-04")
async def test_a_batch_over_two_states_with_three_transforms_rebuilds_each_once_at_its_end() -> None:
    one, two = words(), words()
    runs: list[str] = []
    async with batch(one, two):
        await one.add("a", lambda draft: runs.append("a"), owner="me")
        await one.add("b", lambda draft: runs.append("b"), owner="me")
        await two.add("c", lambda draft: runs.append("c"), owner="me")
        assert (runs, one.revision, two.revision) == ([], 0, 0)
    assert (runs, one.revision, two.revision) == (["a", "b", "c"], 1, 1)


async def test_a_batch_gathers_closing_replacing_changing_and_reloading() -> None:
    state = words()
    closing = await state.add("a", says("a"), owner="me")
    await state.change(add={key: says(key) for key in "bcd"}, owner="me")
    async with batch(state):
        await closing.close()
        await state.replace("b", says("new b"))
        await state.change(remove=["c"], add={"c": says("new c")}, owner="me")
        await state.replace("c", says("newer c"))
        await state.reload()
        assert state.current == ["a", "b", "c", "d"]
    assert state.current == ["new b", "newer c", "d"]
    assert state.revision == 3


async def test_a_state_that_a_batch_did_not_touch_is_not_rebuilt() -> None:
    state = words()
    async with batch(state):
        pass
    assert state.revision == 0


async def test_a_state_that_a_batch_does_not_name_rebuilds_at_once() -> None:
    named, other = words(), words()
    async with batch(named):
        await other.add("a", says("a"), owner="me")
        assert other.current == ["a"]


async def test_a_batch_inside_a_batch_joins_the_outer_one() -> None:
    one, two = words(), words()
    async with batch(one):
        async with batch(one, two):
            await one.add("a", says("a"), owner="me")
            await two.add("a", says("a"), owner="me")
        assert (one.revision, two.revision) == (0, 0)
    assert (one.revision, two.revision) == (1, 1)


async def test_a_duplicate_key_is_refused_inside_the_batch_where_it_is_claimed() -> None:
    state = words()
    await state.add("a", says("a"), owner="early")
    async with batch(state):
        await state.add("b", says("b"), owner="early")
        for key in "ab":
            with pytest.raises(DuplicateKeyError):
                await state.add(key, says("late"), owner="late")
    assert state.current == ["a", "b"]


async def test_what_was_registered_in_a_batch_can_be_closed_and_its_key_taken_again_in_it() -> None:
    state = words()
    old = await state.add("b", says("old"), owner="me")
    async with batch(state):
        first = await state.add("a", says("first"), owner="me")
        await state.replace("a", says("second"))
        await state.replace("b", says("newer"))
        await first.close()
        await old.close()
        await state.add("a", says("third"), owner="you")
    assert state.current == ["third"]


async def test_a_batch_that_is_left_with_an_exception_still_rebuilds_what_was_registered() -> None:
    state = words()
    with pytest.raises(ZeroDivisionError):
        async with batch(state):
            await state.add("a", says("a"), owner="me")
            raise ZeroDivisionError
    assert state.current == ["a"]


async def test_a_batch_that_is_cancelled_still_rebuilds_what_was_registered() -> None:
    state = words()

    async def transform(draft: list[str]) -> None:
        await checkpoint()
        draft.append("a")

    with anyio.CancelScope() as scope:
        async with batch(state):
            await state.add("a", transform, owner="me")
            scope.cancel()
            await checkpoint()
    assert scope.cancelled_caught
    assert state.current == ["a"]


async def test_a_batch_whose_rebuild_fails_keeps_none_of_its_additions_and_all_of_its_closings() -> None:
    state = words()
    closing = await state.add("a", says("closing"), owner="me")
    await state.add("b", says("b"), owner="me")
    with pytest.raises(Refused):
        async with batch(state):
            await closing.close()
            await state.replace("b", says("new b"))
            dead = await state.add("c", fails, owner="me")
    assert state.current == ["closing", "b"]
    await dead.close()
    assert state.current == ["b"]


async def test_one_state_that_fails_does_not_keep_a_batch_from_rebuilding_the_others() -> None:
    broken, sound = words(), words()
    with pytest.raises(Refused):
        async with batch(broken, sound):
            await broken.add("a", fails, owner="me")
            await sound.add("a", says("a"), owner="me")
    assert sound.current == ["a"]


async def test_several_states_that_fail_after_a_batch_raise_a_group() -> None:
    one, two = words(), words()
    with pytest.RaisesGroup(Refused, Refused):
        async with batch(one, two):
            await one.add("a", fails, owner="me")
            await two.add("a", fails, owner="me")


async def test_a_failed_rebuild_after_a_failed_block_shows_both_errors() -> None:
    state = words()
    with pytest.raises(Refused) as caught:
        async with batch(state):
            await state.add("a", fails, owner="me")
            raise ZeroDivisionError
    assert isinstance(caught.value.__context__, ZeroDivisionError)


async def test_another_task_is_not_held_up_by_a_batch() -> None:
    state = words()
    ready, done = anyio.Event(), anyio.Event()

    async def other() -> None:
        await ready.wait()
        await state.add("other", says("other"), owner="other")
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        async with batch(state):
            await state.add("mine", says("mine"), owner="me")
            ready.set()
            await done.wait()
            assert state.current == ["other"]
    assert state.current == ["mine", "other"]


async def test_a_key_that_another_task_took_during_a_batch_is_refused_at_its_end() -> None:
    state = words()
    ready, done = anyio.Event(), anyio.Event()

    async def other() -> None:
        await ready.wait()
        await state.add("a", says("other"), owner="other")
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        with pytest.raises(DuplicateKeyError, match=r"'other' and 'me'"):
            async with batch(state):
                await state.add("a", says("mine"), owner="me")
                ready.set()
                await done.wait()
    assert state.current == ["other"]


async def test_a_registration_of_an_open_batch_that_another_task_closes_never_appears() -> None:
    state = words()
    handles: list[Registration] = []
    ready, done = anyio.Event(), anyio.Event()

    async def other() -> None:
        await ready.wait()
        await handles[0].close()
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        async with batch(state):
            handles.append(await state.add("a", says("a"), owner="me"))
            ready.set()
            await done.wait()
    assert state.current == []


async def test_a_task_that_outlives_its_batch_registers_at_once() -> None:
    state = words()
    over = anyio.Event()

    async def later() -> None:
        await over.wait()
        await state.add("later", says("later"), owner="me")
        assert state.current == ["later"]

    async with anyio.create_task_group() as tasks:
        async with batch(state):
            tasks.start_soon(later)
        over.set()


async def test_a_task_that_outlives_its_batch_does_not_keep_its_transforms_alive() -> None:
    state = words()
    transform = Says("a")
    watched = weakref.ref(transform)
    async with anyio.create_task_group() as tasks:
        async with batch(state):
            tasks.start_soon(anyio.sleep_forever)
            registration = await state.add("a", transform, owner="me")
        await registration.close()
        del transform
        gc.collect()
        assert watched() is None
        tasks.cancel_scope.cancel()


# Any interleaving

KEYS = st.sampled_from(["a", "b", ("b", 1), ("b", "c"), (0, "a"), "d"])
VALUES = st.integers(0, 9).map(str) | st.just("fails")


@attrs.frozen
class Add:
    key: Key
    value: str


@attrs.frozen
class Replace:
    key: Key
    value: str


@attrs.frozen
class Change:
    remove: list[Key]
    add: dict[Key, str]


@attrs.frozen
class Close:
    handle: int


@attrs.frozen
class Reload:
    pass


@attrs.frozen
class Batch:
    steps: list["Step"]


Step: TypeAlias = Add | Replace | Change | Close | Reload | Batch
STEPS: st.SearchStrategy[Step] = st.recursive(
    st.builds(Add, KEYS, VALUES)
    | st.builds(Replace, KEYS, VALUES)
    | st.builds(Change, st.lists(KEYS, max_size=2), st.dictionaries(KEYS, VALUES, max_size=2))
    | st.builds(Close, st.integers(0, 5))
    | st.builds(Reload),
    lambda steps: st.builds(Batch, st.lists(steps, max_size=6)),
    max_leaves=8,
)


def transform_of(value: str) -> Callable[[list[str]], object]:
    async def waits(draft: list[str]) -> None:
        await checkpoint()
        draft.append(value)

    if value == "fails":
        return fails
    return waits if value in "02468" else says(value)


def order(key: Key) -> list[tuple[int, str]]:
    """The law of the order, written another way: numbers, here of one digit, come before texts."""
    parts = [key] if isinstance(key, str) else list(key)
    return [(0, str(part)) if isinstance(part, int) else (1, part) for part in parts]


@attrs.define
class Model:
    """What a Replayed should be: a dictionary of (handle, value), sorted when asked."""

    kept: dict[Key, tuple[int, str]] = attrs.field(factory=dict)
    working: dict[Key, tuple[int, str]] = attrs.field(factory=dict)
    current: list[str] = attrs.field(factory=list)
    handles: int = 0

    def edit(self, step: Step) -> bool:
        """Edits the working copy; False when the step must be refused."""
        match step:
            case Add(key, value):
                return self.edit(Change([], {key: value}))
            case Replace(key, value):
                if key not in self.working:
                    return False
                self.working[key] = (self.working[key][0], value)
            case Change(remove, add):
                rest = {key: kept for key, kept in self.working.items() if key not in remove}
                if not all(key in self.working for key in remove) or rest.keys() & add.keys():
                    return False
                new = {key: (self.handles + number, value) for number, (key, value) in enumerate(add.items())}
                self.working = rest | new
            case Close(handle):
                for entries in (self.kept, self.working):
                    for key in [key for key, kept in entries.items() if kept[0] == handle]:
                        del entries[key]
        return True

    def commit(self) -> bool:
        """Rebuilds; False when it must fail."""
        values = [self.working[key][1] for key in sorted(self.working, key=order)]
        if "fails" in values:
            self.working = dict(self.kept)
            return False
        self.kept, self.current = dict(self.working), values
        return True


@attrs.define
class Run:
    """Does each step to the state and to the model, and compares."""

    state: Words = attrs.field(factory=words)
    model: Model = attrs.field(factory=Model)
    handles: list[Registration] = attrs.field(factory=list)
    touched: bool = False

    async def top(self, step: Step) -> None:
        if isinstance(step, Batch):
            self.touched = False
            outcome = await outcome_of(self.batch(step))
            assert (outcome is None) == (not self.touched or self.model.commit())
        else:
            await self.single(step, commits=True)
        assert self.state.current == self.model.current

    async def batch(self, step: Batch) -> None:
        async with batch(self.state):
            for inner in step.steps:
                if isinstance(inner, Batch):
                    await self.batch(inner)
                else:
                    await self.single(inner, commits=False)
                assert self.state.current == self.model.current

    async def single(self, step: Step, *, commits: bool) -> None:
        if isinstance(step, Close) and step.handle >= len(self.handles):
            return
        if isinstance(step, Close) and self.handles[step.handle].closed:
            await self.handles[step.handle].close()
            return
        self.model.handles = len(self.handles)
        allowed = self.model.edit(step) and (not commits or self.model.commit())
        self.touched = self.touched or allowed
        assert (await outcome_of(self.act(step)) is None) == allowed

    async def act(self, step: Step) -> None:
        match step:
            case Add(key, value):
                self.handles.append(await self.state.add(key, transform_of(value), owner="me"))
            case Replace(key, value):
                await self.state.replace(key, transform_of(value))
            case Change(remove, add):
                transforms = {key: transform_of(value) for key, value in add.items()}
                added = await self.state.change(remove=remove, add=transforms, owner="me")
                self.handles.extend(added.values())
            case Close(handle):
                await self.handles[handle].close()
            case Reload():
                await self.state.reload()


async def outcome_of(action: Awaitable[None]) -> Exception | None:
    try:
        await action
    except (DuplicateKeyError, LookupError, Refused) as error:
        return error
    return None


@given(steps=st.lists(STEPS, max_size=12))
async def test_any_interleaving_gives_the_same_state_as_a_plain_sorted_dictionary(steps: list[Step]) -> None:
    run = Run()
    for step in steps:
        await run.top(step)
    await run.state.reload()
    run.model.commit()
    assert run.state.current == run.model.current


@given(data=st.data(), values=st.dictionaries(KEYS, st.text(max_size=3)))
async def test_the_order_of_registration_never_shows(data: st.DataObject, values: dict[Key, str]) -> None:
    states = words(), words()
    for state in states:
        for key, value in data.draw(st.permutations(list(values.items()))):
            await state.add(key, says(value), owner="me")
    assert states[0].current == states[1].current
