"""A prepared change becomes visible in one step with others, or not at all, and nothing else is lost over it."""

# ruff: noqa: PT012 -- what a block raises, it raises when it ends

from collections.abc import Callable
from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest

from opencode_core.errors import DuplicateKeyError, OpencodeError
from opencode_core.plugins.replay import Replayed, batch

pytestmark = pytest.mark.anyio


def words(on_change: Callable[[list[str]], object] | None = None) -> Replayed[list[str], list[str]]:
    return Replayed(list, list, on_change)


def says(word: str) -> Callable[[list[str]], object]:
    return lambda draft: draft.append(word)


def fails(draft: list[str]) -> None:
    raise ValueError("no")


async def put(state: Replayed[list[str], list[str]], **edits: str) -> None:
    async with state.prepare({key: says(word) for key, word in edits.items()}) as commit:
        commit()


# Committing


async def test_nothing_is_visible_before_the_function_is_called() -> None:
    state = words()
    async with state.prepare({"a": says("hello")}) as commit:
        assert (state.current, state.revision) == ([], 0)
        commit()
        assert (state.current, state.revision) == (["hello"], 1)


async def test_nothing_changes_when_the_function_is_not_called() -> None:
    state = words()
    async with state.prepare({"a": says("hello")}):
        pass
    await state.reload()
    assert state.current == []


@pytest.mark.behaviour("ST-01")
async def test_several_states_change_in_one_step_and_listeners_see_all_of_it() -> None:
    seen: list[list[list[str]]] = []
    states = [words(lambda _: seen.append([each.current for each in states])) for _ in range(2)]

    async with AsyncExitStack() as stack:
        commits = [await stack.enter_async_context(each.prepare({"a": says("x")})) for each in states]
        for commit in commits:
            commit()
        assert seen == []
    assert seen == [[["x"], ["x"]]] * 2


async def test_edits_keep_their_places_among_transforms_that_were_added() -> None:
    state = words()
    await state.add("b", says("b"), owner="me")
    await put(state, a="a", c="c")
    await put(state, a="A")
    assert state.current == ["A", "b", "c"]


async def test_a_prepared_edit_is_removed_and_removing_what_is_not_there_is_fine() -> None:
    state = words()
    await put(state, a="a", b="b")
    async with state.prepare({"a": None, "nothing": None}) as commit:
        commit()
    assert state.current == ["b"]


async def test_the_listener_is_not_told_of_what_did_not_happen() -> None:
    told: list[list[str]] = []
    state = words(told.append)
    async with state.prepare({"a": says("x")}):
        pass
    assert told == []


# Refusing


async def test_a_key_that_somebody_added_is_not_overwritten() -> None:
    state = words()
    await state.add("a", says("mine"), owner="me")
    with pytest.raises(DuplicateKeyError, match="by both 'me' and 'a'"):
        async with state.prepare({"a": says("theirs")}):
            raise AssertionError("unreachable")
    assert state.current == ["mine"]


async def test_a_key_that_somebody_added_is_not_removed() -> None:
    state = words()
    await state.add("a", says("mine"), owner="me")
    with pytest.raises(DuplicateKeyError):
        async with state.prepare({"a": None}):
            raise AssertionError("unreachable")
    assert state.current == ["mine"]


async def test_a_key_that_was_prepared_cannot_be_added() -> None:
    state = words()
    await put(state, a="theirs")
    with pytest.raises(DuplicateKeyError):
        await state.add("a", says("mine"), owner="me")


async def test_a_transform_that_raises_leaves_the_state_as_it_was() -> None:
    state = words()
    await put(state, a="a")
    with pytest.raises(ValueError, match="no"):
        async with state.prepare({"a": fails}):
            raise AssertionError("unreachable")
    await state.reload()
    assert state.current == ["a"]


async def test_the_function_cannot_be_called_after_the_block() -> None:
    state = words()
    async with state.prepare({"a": says("late")}) as commit:
        pass
    await state.add("b", says("b"), owner="me")
    with pytest.raises(OpencodeError, match="after its block"):
        commit()
    assert state.current == ["b"]


async def test_the_function_cannot_be_called_twice() -> None:
    state = words()
    async with state.prepare({"a": says("a")}) as commit:
        commit()
        with pytest.raises(OpencodeError, match="twice"):
            commit()
    assert (state.current, state.revision) == (["a"], 1)


@pytest.mark.parametrize("change", ["add", "reload", "close", "prepare"])
async def test_changing_the_state_inside_the_block_is_refused_instead_of_waiting_for_itself(change: str) -> None:
    state = words()
    held = await state.add("held", says("held"), owner="me")
    async with state.prepare({"a": says("a")}) as commit:
        with pytest.raises(OpencodeError, match="inside the block"):
            if change == "add":
                await state.add("b", says("b"), owner="me")
            elif change == "reload":
                await state.reload()
            elif change == "close":
                await held.close()
            else:
                async with state.prepare({}):
                    raise AssertionError("unreachable")
        commit()
    await state.add("b", says("b"), owner="me")
    assert state.current == ["a", "b", "held"]


async def test_another_state_may_be_changed_inside_the_block() -> None:
    state, other = words(), words()
    async with state.prepare({"a": says("a")}) as commit:
        await other.add("b", says("b"), owner="me")
        commit()
    assert (state.current, other.current) == (["a"], ["b"])


async def test_a_task_that_was_started_inside_may_change_the_state_when_the_block_has_ended() -> None:
    state, ended = words(), anyio.Event()

    async def later() -> None:
        await ended.wait()
        await state.add("b", says("b"), owner="me")

    async with anyio.create_task_group() as group:
        async with state.prepare({"a": says("a")}) as commit:
            group.start_soon(later)
            await anyio.lowlevel.checkpoint()
            commit()
        ended.set()
    assert state.current == ["a", "b"]


async def test_a_transform_cannot_prepare_the_state_that_it_rebuilds() -> None:
    state = words()

    async def own(draft: list[str]) -> None:
        async with state.prepare({}):
            raise AssertionError("unreachable")

    with pytest.raises(OpencodeError, match="A transform tried"):
        await state.add("a", own, owner="me")


# Beside others


async def test_what_others_change_meanwhile_waits_and_is_not_lost() -> None:
    state, prepared = words(), anyio.Event()

    async def change() -> None:
        await prepared.wait()
        await state.add("b", says("b"), owner="me")

    async with anyio.create_task_group() as group:
        group.start_soon(change)
        async with state.prepare({"a": says("a")}) as commit:
            prepared.set()
            await anyio.wait_all_tasks_blocked()
            commit()
            assert state.current == ["a"]
    assert state.current == ["a", "b"]


async def test_what_a_batch_gathered_is_applied_after_a_prepared_change() -> None:
    state = words()
    async with batch(state):
        await state.add("b", says("b"), owner="me")
        await put(state, a="a")
        assert state.current == ["a"]
    assert state.current == ["a", "b"]


async def test_cancelling_before_the_function_is_called_changes_nothing_and_blocks_nobody() -> None:
    state = words()
    with anyio.CancelScope() as scope:
        async with state.prepare({"a": says("a")}) as commit:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            commit()
    await state.add("b", says("b"), owner="me")
    assert state.current == ["b"]


async def test_a_block_that_raises_after_the_function_was_called_keeps_the_change() -> None:
    state = words()
    with pytest.raises(ValueError, match="after"):
        async with state.prepare({"a": says("a")}) as commit:
            commit()
            raise ValueError("after")
    assert state.current == ["a"]
