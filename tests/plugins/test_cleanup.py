"""Clean-ups: every one runs, in order, and none can hold up the others or the exit of the process."""

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from opencode_core.plugins.cleanup import run_cleanups

SOON = 0.05


async def fails() -> None:
    raise ValueError("no")


async def test_clean_ups_run_one_after_the_other_in_the_order_given() -> None:
    order: list[str] = []

    async def slow() -> None:
        order.append("slow starts")
        await anyio.sleep(0.01)
        order.append("slow ends")

    faults = await run_cleanups([slow, lambda: order.append("plain")], deadline=1)
    assert (order, faults) == (["slow starts", "slow ends", "plain"], [])


async def test_a_clean_up_that_raises_is_returned_and_the_next_one_runs() -> None:
    done: list[str] = []
    (fault,) = await run_cleanups([fails, lambda: done.append("next")], deadline=1)
    assert (fault.cleanup, type(fault.error), done) == ("fails", ValueError, ["next"])


async def test_a_plain_clean_up_that_raises_is_returned() -> None:
    def breaks() -> None:
        raise KeyError("gone")

    (fault,) = await run_cleanups([breaks], deadline=1)
    assert isinstance(fault.error, KeyError)


async def exits_later() -> None:
    sys.exit(3)


@pytest.mark.parametrize("exits", [sys.exit, exits_later], ids=["plain", "async"])
async def test_a_clean_up_that_exits_takes_nobody_with_it(exits: Callable[[], Any]) -> None:
    done: list[str] = []
    (fault,) = await run_cleanups([exits, lambda: done.append("next")], deadline=1)
    assert (type(fault.error), done) == (SystemExit, ["next"])


async def test_an_async_clean_up_that_sleeps_forever_is_abandoned_at_the_deadline() -> None:
    done: list[str] = []
    start = time.monotonic()
    (fault,) = await run_cleanups([anyio.sleep_forever, lambda: done.append("next")], deadline=SOON)
    assert (fault.error, done) == (None, ["next"])
    assert time.monotonic() - start < 5


async def test_a_plain_clean_up_that_never_returns_is_abandoned_at_the_deadline() -> None:
    release, done = threading.Event(), []
    (fault,) = await run_cleanups([release.wait, lambda: done.append("next")], deadline=SOON)
    release.set()
    assert (fault.cleanup, fault.error, done) == ("Event.wait", None, ["next"])


async def test_what_a_clean_up_returns_is_awaited() -> None:
    done: list[str] = []

    async def later() -> None:
        done.append("awaited")

    def returns_an_awaitable() -> Awaitable[None]:
        return later()

    assert await run_cleanups([returns_an_awaitable], deadline=1) == []
    assert done == ["awaited"]


async def test_an_awaitable_that_was_returned_is_under_the_same_deadline() -> None:
    (fault,) = await run_cleanups([lambda: anyio.sleep_forever()], deadline=SOON)
    assert fault.error is None


async def test_a_partial_of_an_async_function_is_awaited() -> None:
    done: list[str] = []

    async def close(what: str) -> None:
        done.append(what)

    assert await run_cleanups([functools.partial(close, "it")], deadline=1) == []
    assert done == ["it"]


async def test_plain_clean_ups_run_outside_the_event_loops_thread() -> None:
    threads: list[threading.Thread] = []
    await run_cleanups([lambda: threads.append(threading.current_thread())], deadline=1)
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


async def test_clean_ups_run_to_their_end_when_the_caller_is_cancelled() -> None:
    done: list[str] = []

    async def slow() -> None:
        await anyio.sleep(0.01)
        done.append("slow")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await run_cleanups([slow, lambda: done.append("plain")], deadline=1)
    assert done == ["slow", "plain"]


async def test_the_deadline_holds_when_the_caller_is_cancelled() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        (fault,) = await run_cleanups([anyio.sleep_forever], deadline=SOON)
    assert fault.error is None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_clean_up_that_awaits_the_task_it_cancelled_ends_nobody_else(anyio_backend: str) -> None:
    import asyncio

    done: list[str] = []
    task = asyncio.create_task(asyncio.sleep(60))

    async def stop() -> None:
        task.cancel()
        await task

    await run_cleanups([stop, lambda: done.append("next")], deadline=1)
    assert done == ["next"]


async def test_a_fault_names_the_function_and_never_its_arguments() -> None:
    class Closer:
        async def __call__(self) -> None:
            raise ValueError

        def __repr__(self) -> str:
            return "Closer(hunter2)"

    async def close(token: str) -> None:
        raise ValueError

    faults = await run_cleanups([functools.partial(close, "hunter2"), Closer()], deadline=1)
    assert [fault.cleanup.rpartition(".")[2] for fault in faults] == ["close", "Closer"]


_ENDLESS = """
import threading, anyio
from opencode_core.plugins.cleanup import run_cleanups
def never():
    threading.Event().wait()
async def main():
    faults = await run_cleanups([never, never], deadline=0.05)
    print(len(faults), "abandoned", flush=True)
anyio.run(main, backend={backend!r})
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_process_exits_although_a_clean_up_never_returns(backend: str) -> None:
    program = [sys.executable, "-c", _ENDLESS.format(backend=backend)]
    run = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("2 abandoned\n", "", 0)


async def test_a_clean_up_that_returns_after_the_deadline_disturbs_nobody() -> None:
    release = threading.Event()
    await run_cleanups([release.wait], deadline=SOON)
    release.set()
    await anyio.sleep(SOON)
