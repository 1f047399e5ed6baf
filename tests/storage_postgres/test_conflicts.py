"""Transactions that collide run again; those of one process share their commits and not their failures."""

import threading
from collections.abc import Callable

import anyio
import anyio.to_thread
import psycopg
import pytest

from plugin_sdk.storage import StorageConflictError, StorageError, Transaction
from plugins_builtin.storage_postgres import running
from tests.storage_postgres.stores import get, opened, put, schema_of
from tests.storage_postgres.test_connections import refuse
from tests.support.postgres import PostgresServer


def number_in(tx: Transaction, key: str = "n") -> int:
    """The number that is kept there."""
    number = tx.get("things", (key,)) or 0
    assert isinstance(number, int)
    return number


async def test_a_work_whose_reading_was_overtaken_runs_again(postgres_url: str) -> None:
    has_read, may_go_on, runs = threading.Event(), threading.Event(), []

    def slow(tx: Transaction) -> None:
        number = number_in(tx)
        runs.append(number)
        has_read.set()
        may_go_on.wait()
        tx.put("things", ("n",), number + 1)

    async with opened(postgres_url) as one, opened(postgres_url) as two, anyio.create_task_group() as tasks:
        tasks.start_soon(one.transact, slow)
        await anyio.to_thread.run_sync(has_read.wait)
        await put(two, ("n",), 10)
        may_go_on.set()
    assert runs == [0, 10]
    async with opened(postgres_url) as store:
        assert await get(store, ("n",)) == 11


async def test_two_that_read_what_the_other_writes_do_not_both_believe_it(postgres_url: str) -> None:
    both_have_read, runs = threading.Barrier(2), []

    def give_up(own: str, other: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            runs.append(own)
            is_alone = number_in(tx, other) == 1
            if runs.count(own) == 1:
                both_have_read.wait()
            if not is_alone:
                tx.put("things", (own,), 1)

        return work

    async with opened(postgres_url) as one, opened(postgres_url) as two:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.transact, give_up("a", "b"))
            tasks.start_soon(two.transact, give_up("b", "a"))
        there = await one.view(lambda tx: [key for key, _ in tx.scan("things")])
    assert len(there) == 1
    assert len(runs) == 3


async def test_a_transaction_that_collides_for_ever_is_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_MOST_ATTEMPTS", 3)
    runs = []
    async with opened(postgres_url) as store:
        await put(store, ("n",), 0)
        with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as rude:

            def work(tx: Transaction) -> None:
                number = number_in(tx)
                rude.execute(f"UPDATE {schema_of(postgres_url)}.documents SET body = '{number + 100}'".encode())
                runs.append(number)
                tx.put("things", ("n",), number + 1)

            with pytest.raises(StorageConflictError, match="3 times"):
                await store.transact(work)
        assert runs == [0, 100, 200]
        assert await get(store, ("n",)) == 300
        await put(store, ("n",), 1)


async def test_many_who_count_on_one_number_all_succeed(postgres_url: str) -> None:
    async def count() -> None:
        async with opened(postgres_url) as store:
            for _ in range(10):
                await store.transact(lambda tx: tx.put("things", ("n",), number_in(tx) + 1))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(count)
    async with opened(postgres_url) as store:
        assert await get(store, ("n",)) == 40


async def test_transactions_that_waited_together_are_committed_together(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def first(tx: Transaction) -> None:
        begun.set()
        may_go_on.wait()

    async with opened(postgres_url) as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.transact, first)
            await anyio.to_thread.run_sync(begun.wait)
            for number in range(5):
                tasks.start_soon(put, store, (number,), number)
            await anyio.wait_all_tasks_blocked()
            may_go_on.set()
        written_by = postgres_server.execute(f"SELECT DISTINCT xmin FROM {schema_of(postgres_url)}.documents")
    assert len(written_by) == 1


async def test_one_that_the_server_refuses_takes_nobody_along(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    begun, may_go_on, refused = threading.Event(), threading.Event(), []

    def first(tx: Transaction) -> None:
        begun.set()
        may_go_on.wait()

    async with opened(postgres_url) as store:

        async def put_bad() -> None:
            try:
                await put(store, ("bad",), 1)
            except StorageError as error:
                refused.append(error)

        refuse(postgres_server, schema_of(postgres_url), "53100")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.transact, first)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.start_soon(put, store, ("before",), 1)
            tasks.start_soon(put_bad)
            tasks.start_soon(put, store, ("later",), 1)
            await anyio.wait_all_tasks_blocked()
            may_go_on.set()
        assert len(refused) == 1
        assert await store.view(lambda tx: [key for key, _ in tx.scan("things")]) == [("before",), ("later",)]
