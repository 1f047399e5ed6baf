"""Observing: every loader runs once and concurrently; one that raises or overruns is unavailable, never gone."""

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from opencode_core.context.observe import LoadFault, must_pass
from opencode_core.model.context import ABSENT, UNAVAILABLE, Boundary
from tests.context.making import HERE, Loader, observed, source


async def test_all_sources_are_observed_concurrently() -> None:
    arrived, everybody = [], anyio.Event()

    async def load() -> str:
        arrived.append(1)
        if len(arrived) == 3:
            everybody.set()
        await everybody.wait()
        return "value"

    with anyio.fail_after(5):
        await observed(*(source(f"test/{key}", load) for key in "abc"))


async def test_an_observation_has_every_key_in_order() -> None:
    later = anyio.Event()

    async def slow() -> str:
        await later.wait()
        return "slow"

    async def quick() -> str:
        later.set()
        return "quick"

    seen = await observed(source("test/b", slow), source("test/a", UNAVAILABLE), source("test/c", quick))
    assert list(seen.values.items()) == [("test/b", "slow"), ("test/a", UNAVAILABLE), ("test/c", "quick")]
    assert [each.key for each in seen.sources] == ["test/b", "test/a", "test/c"]


async def test_each_loader_runs_once() -> None:
    loaders = [Loader(number) for number in range(40)]
    await observed(*(source(f"test/{number}", loader) for number, loader in enumerate(loaders)))
    assert {loader.runs for loader in loaders} == {1}


async def test_an_absent_source_is_not_in_the_observation() -> None:
    seen = await observed(source("test/a", ABSENT), source("test/b"))
    assert ([each.key for each in seen.sources], dict(seen.values), seen.reasons) == (
        ["test/b"],
        {"test/b": "value"},
        {},
    )


@pytest.mark.parametrize("error", [OSError("disk"), SystemExit(3), BaseExceptionGroup("two", [ValueError("one")])])
async def test_a_loader_that_raises_is_unavailable_and_its_owner_is_told(error: BaseException) -> None:
    faults: list[LoadFault] = []

    async def fails() -> str:
        raise error

    seen = await observed(source("test/a"), source("test/b", fails), source("test/c"), on_fault=faults.append)
    assert seen.unavailable == ("test/b",)
    assert seen.values["test/c"] == "value"
    assert [(fault.key, fault.owner, fault.error) for fault in faults] == [("test/b", "tester", error)]
    assert type(error).__name__ in seen.reasons["test/b"]


async def test_a_loader_that_overruns_is_unavailable_and_is_cancelled() -> None:
    faults: list[LoadFault] = []
    ended: list[str] = []

    async def hangs() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    seen = await observed(
        source("test/a", hangs, deadline=0.01),
        source("test/b", hangs),
        source("test/c"),
        deadline=0.02,
        on_fault=faults.append,
    )
    assert (seen.unavailable, seen.values["test/c"]) == (("test/a", "test/b"), "value")
    assert sorted(fault.reason for fault in faults) == ["it did not answer in 0.01 s", "it did not answer in 0.02 s"]
    assert [fault.error for fault in faults] == [None, None]
    assert ended == ["cancelled", "cancelled"]


async def test_a_loader_that_waits_and_then_waits_again_still_has_a_deadline() -> None:
    async def blinks() -> str:
        await anyio.lowlevel.checkpoint()
        return "quick"

    async def hangs() -> str:
        await anyio.sleep_forever()
        raise AssertionError

    sources = [source(f"test/{number}", blinks if number % 2 else hangs) for number in range(6)]
    seen = await observed(*sources, deadline=0.02)
    assert seen.unavailable == ("test/0", "test/2", "test/4")


async def test_a_cancelled_observation_is_cancelled_and_not_a_fault() -> None:
    faults: list[LoadFault] = []

    async def hangs() -> str:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.move_on_after(0.01) as scope:
        await observed(source("test/a", hangs), on_fault=faults.append)
    assert (scope.cancelled_caught, faults) == (True, [])


async def test_a_loader_with_an_argument_is_given_the_boundary_and_one_with_a_default_is_not() -> None:
    seen: list[Any] = []

    async def wants(boundary: Boundary) -> str:
        seen.append(boundary)
        return "a"

    async def has_its_own(mine: str = "own") -> str:
        return mine

    found = await observed(source("test/a", wants), source("test/b", has_its_own))
    assert (seen, found.values["test/b"]) == ([HERE], "own")


async def test_without_sources_there_is_nothing_to_observe() -> None:
    assert (await observed()).sources == ()


async def test_a_loader_that_waited_for_something_cancelled_is_unavailable_and_fails_nobody_else(
    anyio_backend_name: str,
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("Only asyncio can cancel what a task waits for.")
    faults: list[LoadFault] = []

    async def waits() -> str:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task
        raise AssertionError

    seen = await observed(source("test/a", waits), source("test/b"), on_fault=faults.append)
    assert (seen.unavailable, seen.values["test/b"]) == (("test/a",), "value")
    assert [fault.key for fault in faults] == ["test/a"]


async def test_whatever_a_loader_raises_and_however_it_says_so_fails_nobody_else() -> None:
    async def leaves() -> str:
        raise BaseExceptionGroup("several", [SystemExit(3), OSError("disk")])

    class Silent(Exception):
        def __str__(self) -> str:
            raise SystemExit(4)

    async def mumbles() -> str:
        raise Silent

    seen = await observed(source("test/a", leaves), source("test/b", mumbles), source("test/c"))
    assert (seen.unavailable, seen.values["test/c"]) == (("test/a", "test/b"), "value")
    assert seen.reasons["test/b"] == "it raised Silent"


async def test_what_ends_everything_is_nobodys_fault_and_is_let_through() -> None:
    assert must_pass(KeyboardInterrupt())
    assert must_pass(BaseExceptionGroup("several", [OSError(), KeyboardInterrupt()]))
    assert not must_pass(SystemExit())


@pytest.mark.parametrize("deadline", ["5", float("nan"), float("inf"), 0, -1, True])
def test_a_deadline_that_is_none_is_refused(deadline: Any) -> None:
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        source("test/a", deadline=deadline)
