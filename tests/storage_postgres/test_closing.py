"""A closed store leaves nothing behind, and lets finish what had begun; who was cancelled in time wrote nothing."""

import os
import signal
import threading

import anyio
import anyio.to_thread
import pytest

from plugin_sdk.storage import (
    ReadTransaction,
    Storage,
    StorageClosedError,
    StorageError,
    StorageUnavailableError,
    Transaction,
)
from plugins_builtin.storage_postgres.opening import open_store
from tests.storage_postgres.proxy import proxied
from tests.storage_postgres.stores import get, named, opened, put
from tests.support.postgres import PostgresServer


def our_threads() -> set[threading.Thread]:
    """The threads of all open stores."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("storage-postgres")}


async def test_no_connection_and_no_thread_is_left(postgres_server: PostgresServer, postgres_url: str) -> None:
    url, ours = named(postgres_url)
    before = our_threads()
    store = await open_store(url)
    async with store.changes("things"):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(put, store, (number,), number)
                tasks.start_soon(get, store, (number,))
        assert our_threads() > before
    await store.aclose()
    await store.aclose()
    assert our_threads() <= before
    # The server takes a moment to see them go; if it never does, the test runs out of time.
    postgres_server.execute(
        f"DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_stat_activity WHERE {ours}) LOOP "
        "PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$"
    )


async def test_never_more_connections_than_the_pool_are_open(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    async with opened(f"{url}&pool=3") as store:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(put, store, (number,), number)
                tasks.start_soon(get, store, (number,))
        [(count,)] = postgres_server.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {ours}")
    assert count <= 3


async def test_closing_does_not_wait_for_a_server_process_that_hangs(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    store = await open_store(f"{url}&timeout=0.2")
    await put(store, ("a",), 1)
    pids = [pid for (pid,) in postgres_server.execute(f"SELECT pid FROM pg_stat_activity WHERE {ours}")]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        await store.aclose()  # if it waits, the test runs out of time
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def test_closing_does_not_wait_for_a_listener_that_gets_no_answer(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    before = our_threads()
    with proxied(postgres_server.port) as proxy:
        url = postgres_url.replace(str(postgres_server.port), str(proxy.port))
        store = await open_store(f"{url}&timeout=0.2")
        proxy.word, proxy.is_silent = b"LISTEN", True
        with pytest.raises(StorageUnavailableError):
            async with store.changes("things"):
                pass
        proxy.is_cut = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect_no_changes, store)
            await anyio.wait_all_tasks_blocked()
            await store.aclose()
        for thread in our_threads() - before:
            await anyio.to_thread.run_sync(thread.join)  # it ends by itself


async def expect_no_changes(store: Storage) -> None:
    """Wait for changes in vain."""
    with pytest.raises(StorageError):
        async with store.changes("things"):
            pass


async def test_closing_waits_for_what_had_begun_and_refuses_the_rest(postgres_url: str) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        begun.set()
        may_go_on.wait()
        tx.put("things", ("a",), "kept")

    store = await open_store(postgres_url)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.transact, slow)
        await anyio.to_thread.run_sync(begun.wait)
        tasks.start_soon(store.aclose)
        await anyio.wait_all_tasks_blocked()
        for refused in (store.facts, store.check, lambda: get(store, ("a",)), lambda: put(store, ("a",), 1)):
            with pytest.raises(StorageClosedError):
                await refused()
        may_go_on.set()
    async with opened(postgres_url) as again:
        assert await get(again, ("a",)) == "kept"


async def test_who_is_cancelled_while_waiting_for_a_turn_wrote_nothing(postgres_url: str) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        begun.set()
        may_go_on.wait()

    async with opened(postgres_url) as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.transact, slow)
            await anyio.to_thread.run_sync(begun.wait)
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(put, store, ("a",), "late")
                await anyio.wait_all_tasks_blocked()
                impatient.cancel_scope.cancel()
            may_go_on.set()
        assert await get(store, ("a",)) is None


async def test_a_view_that_is_cancelled_while_waiting_for_a_thread_never_runs(postgres_url: str) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    ran: list[ReadTransaction] = []

    def slow(tx: ReadTransaction) -> None:
        begun.set()
        may_go_on.wait()

    async with opened(f"{postgres_url}&pool=2") as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.view, slow)
            await anyio.to_thread.run_sync(begun.wait)
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(store.view, ran.append)
                await anyio.wait_all_tasks_blocked()
                impatient.cancel_scope.cancel()
            may_go_on.set()
        await get(store, ("a",))
        assert ran == []


async def test_who_is_cancelled_after_the_beginning_has_written(postgres_url: str) -> None:
    begun, may_go_on, returned = threading.Event(), threading.Event(), []

    def slow(tx: Transaction) -> str:
        begun.set()
        may_go_on.wait()
        tx.put("things", ("a",), "kept")
        return "done"

    async with opened(postgres_url) as store:

        async def call() -> None:
            returned.append(await store.transact(slow))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
            may_go_on.set()
        assert returned == ["done"]
        assert await get(store, ("a",)) == "kept"
