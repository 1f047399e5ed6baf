"""Functions that block run in threads, and those that hang do not become more and more."""

import subprocess
import sys
import threading

import anyio
import anyio.to_thread
import pytest

from plugin_sdk.threads import GIVEN_UP, BoundedThreads


async def test_a_function_runs_in_a_thread_and_what_it_returns_or_raises_is_handed_on() -> None:
    threads = BoundedThreads()
    assert await threads.run(threading.current_thread) is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)


async def test_no_call_is_begun_while_several_that_were_given_up_have_not_returned() -> None:
    threads, hanging = BoundedThreads(), Hanging()
    try:
        for _ in range(GIVEN_UP):
            await hanging.give_up(threads)
        with pytest.raises(TimeoutError, match=f"{GIVEN_UP} earlier calls"):
            await threads.run(hanging)
        assert await BoundedThreads().run(lambda: "others") == "others"
    finally:
        hanging.release.set()
    while True:
        try:
            assert await threads.run(lambda: "again") == "again"
        except TimeoutError:
            await anyio.sleep(0.001)  # until the threads have noticed
        else:
            return


async def test_a_call_that_is_slow_and_waited_for_counts_for_nothing() -> None:
    threads, hanging = BoundedThreads(), Hanging()
    async with anyio.create_task_group() as group:
        for _ in range(GIVEN_UP + 1):
            group.start_soon(threads.run, hanging)
            await anyio.to_thread.run_sync(hanging.begun.acquire)
        assert await threads.run(lambda: "answer") == "answer"
        hanging.release.set()


async def test_a_call_that_hangs_takes_no_thread_from_anybody_else() -> None:
    threads, hanging = BoundedThreads(), Hanging()
    others = anyio.to_thread.current_default_thread_limiter()
    try:
        await hanging.give_up(threads)
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, hanging)
            await anyio.to_thread.run_sync(hanging.begun.acquire)
            assert others.borrowed_tokens == 0
            group.cancel_scope.cancel()
    finally:
        hanging.release.set()


class Hanging:
    """A function that hangs until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)

    def __call__(self) -> None:
        self.begun.release()
        self.release.wait(30)

    async def give_up(self, threads: BoundedThreads) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, self)
            await anyio.to_thread.run_sync(self.begun.acquire)
            group.cancel_scope.cancel()


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    program = """
import anyio, threading
from plugin_sdk.threads import BoundedThreads

async def main():
    with anyio.move_on_after(0.05):
        await BoundedThreads().run(threading.Event().wait)
    print("done")

anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "done\n"
