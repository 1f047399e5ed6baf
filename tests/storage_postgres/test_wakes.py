"""Whoever waits for changes hears of every commit, also of other processes, and after the connection was lost."""

import subprocess
import sys

import anyio
import anyio.to_thread
import psycopg
import pytest

from plugin_sdk.storage import StorageClosedError, StorageUnavailableError
from plugins_builtin.storage_postgres.attempt import payload_of
from plugins_builtin.storage_postgres.statements import statements_for
from tests.storage_postgres.stores import get, named, opened, put, put_many, schema_of
from tests.support.postgres import PostgresServer

LISTENS = "query LIKE 'LISTEN%'"
WRITES = """
import sys, anyio
from plugins_builtin.storage_postgres import open_store

async def main():
    store = await open_store(sys.argv[1])
    await store.transact(lambda tx: tx.put("things", ("theirs",), 1))
    await store.aclose()

anyio.run(main)
"""


async def test_a_commit_of_another_process_wakes(postgres_url: str) -> None:
    async with opened(postgres_url) as store, store.changes("things", ("theirs",)) as wakes:
        await anyio.to_thread.run_sync(
            lambda: subprocess.run([sys.executable, "-c", WRITES, postgres_url], check=True, timeout=50)
        )
        await anext(wakes)
        assert await get(store, ("theirs",)) == 1


async def test_only_those_are_woken_who_wait_for_what_was_written(postgres_url: str) -> None:
    async with (
        opened(postgres_url) as one,
        opened(postgres_url) as two,
        one.changes("things", ("a", 1)) as hit,
        one.changes("things", ("b",)) as missed,
    ):
        await put(two, ("a", 1, "x"), 1)
        await anext(hit)
        with pytest.raises(TimeoutError):
            with anyio.fail_after(0.05):
                await anext(missed)


async def test_a_transaction_too_large_to_be_listed_wakes_all_the_same(postgres_url: str) -> None:
    async with opened(postgres_url) as one, opened(postgres_url) as two, one.changes("things", (399,)) as wakes:
        await put_many(two, [(number, "ä" * 20) for number in range(400)])
        await anext(wakes)


async def test_an_announcement_that_makes_no_sense_wakes(postgres_server: PostgresServer, postgres_url: str) -> None:
    channel = statements_for(schema_of(postgres_url)).channel
    async with opened(postgres_url) as store:
        for payload in ("", "{", "[1]", '["x", 7]'):
            async with store.changes("things") as wakes:
                postgres_server.execute(f"NOTIFY {channel}, '{payload}'")
                await anext(wakes)


async def test_a_commit_while_the_listening_connection_was_lost_is_not_missed(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    async with opened(url) as one, opened(postgres_url) as two, one.changes("things") as wakes:
        assert postgres_server.kill_backends(where=f"{ours} AND {LISTENS}") == 1
        await put(two, ("a",), 1)
        await anext(wakes)
        assert await get(one, ("a",)) == 1


async def test_after_the_listening_connection_was_lost_commits_wake_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    async with opened(url) as one, opened(postgres_url) as two, one.changes("things") as wakes:
        assert postgres_server.kill_backends(where=f"{ours} AND {LISTENS}") == 1
        await anext(wakes)  # it listens again, and anything may have changed
        for number in range(3):
            await put(two, ("a",), number)
            await anext(wakes)


async def test_there_is_one_listening_connection_and_only_when_somebody_waits(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    question = f"SELECT count(*) FROM pg_stat_activity WHERE {ours} AND {LISTENS}"
    async with opened(url) as store:
        await put(store, ("a",), 1)
        assert postgres_server.execute(question) == [(0,)]
        async with store.changes("things"), store.changes("others"):
            assert postgres_server.execute(question) == [(1,)]


async def test_who_cannot_listen_is_told_and_may_try_again(private_postgres_server: PostgresServer) -> None:
    server = private_postgres_server
    async with opened(server.url()) as store:
        server.stop()
        with pytest.raises(StorageUnavailableError):
            async with store.changes("things"):
                pass
        server.start()
        async with store.changes("things") as wakes, opened(server.url()) as other:
            await put(other, ("a",), 1)
            await anext(wakes)


async def test_closing_ends_the_waiting_also_while_the_connection_is_lost(
    private_postgres_server: PostgresServer,
) -> None:
    server = private_postgres_server
    async with opened(server.url()) as store, store.changes("things") as wakes:
        server.stop()
        await store.aclose()
        with pytest.raises(StorageClosedError):
            await anext(wakes)


def test_a_payload_is_never_longer_than_the_server_takes(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        for length in (7_000, 7_950, 7_970, 7_980, 7_990, 8_000, 9_000):
            payload = payload_of([("things", ("ä" * (length // 2),))], origin="0123456789abcdef")
            connection.execute("SELECT pg_notify('somewhere', %s)", (payload,))
