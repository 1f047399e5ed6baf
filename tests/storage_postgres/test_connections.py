"""A lost connection is a typed error or goes unnoticed, never a guess; the next operation works."""

import pytest

from plugin_sdk.storage import (
    JSON,
    ReadTransaction,
    StorageBusyError,
    StorageDamagedError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
    StorageUnavailableError,
    Transaction,
)
from plugins_builtin.storage_postgres.address import read_address
from plugins_builtin.storage_postgres.connecting import dial
from tests.storage_postgres.proxy import proxied
from tests.storage_postgres.stores import get, named, opened, put, schema_of
from tests.support.postgres import PostgresServer


async def test_a_connection_that_ends_in_mid_transaction_is_an_error_and_nothing_was_written(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)

    def work(tx: Transaction) -> None:
        tx.get("things", ("a",))
        tx.put("things", ("a",), "lost")
        assert postgres_server.kill_backends(where=ours)
        tx.get("things", ("b",))

    async with opened(url) as store:
        with pytest.raises(StorageUnavailableError, match="nothing was written") as caught:
            await store.transact(work)
        assert not caught.value.outcome_unknown
        assert await get(store, ("a",)) is None
        await put(store, ("a",), "kept")
        assert await get(store, ("a",)) == "kept"


async def test_a_work_that_hides_a_lost_connection_does_not_count(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)

    def work(tx: Transaction) -> str:
        tx.get("things", ("a",))
        postgres_server.kill_backends(where=ours)
        try:
            tx.get("things", ("a",))
        except StorageError:
            return "all is well"
        return "how?"

    async with opened(url) as store:
        with pytest.raises(StorageUnavailableError):
            await store.transact(work)


async def test_a_connection_that_ends_between_the_work_and_its_commit_is_known_to_have_written_nothing(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)

    def work(tx: Transaction) -> None:
        tx.get("things", ("a",))
        tx.put("things", ("a",), "lost")
        postgres_server.kill_backends(where=ours)

    async with opened(url) as store:
        with pytest.raises(StorageUnavailableError) as caught:
            await store.transact(work)
        assert not caught.value.outcome_unknown
        assert await get(store, ("a",)) is None


async def test_a_connection_that_ends_in_a_view_is_an_error(postgres_server: PostgresServer, postgres_url: str) -> None:
    url, ours = named(postgres_url)

    def work(tx: ReadTransaction) -> JSON:
        tx.get("things", ("a",))
        postgres_server.kill_backends(where=ours)
        return tx.get("things", ("b",))

    async with opened(url) as store:
        with pytest.raises(StorageUnavailableError):
            await store.view(work)
        assert await get(store, ("a",)) is None


async def test_connections_that_died_in_the_pool_are_replaced_unnoticed(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    async with opened(url) as store:
        for number in range(3):
            assert postgres_server.kill_backends(where=ours)
            await put(store, ("a",), number)
            assert postgres_server.kill_backends(where=ours)
            assert await get(store, ("a",)) == number
            assert postgres_server.kill_backends(where=ours)
            assert await store.check() == []


async def test_a_commit_whose_answer_was_lost_is_found_out_to_have_succeeded(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with proxied(postgres_server.port) as proxy:
        url = postgres_url.replace(str(postgres_server.port), str(proxy.port))
        async with opened(url) as store:
            proxy.word = b"COMMIT"
            runs = []

            def work(tx: Transaction) -> str:
                runs.append(1)
                count = tx.get("things", ("n",)) or 0
                assert isinstance(count, int)
                tx.put("things", ("n",), count + 1)
                return "done"

            assert await store.transact(work) == "done"
            assert proxy.is_cut
            assert len(runs) == 1
            assert await get(store, ("n",)) == 1


async def test_a_commit_that_never_arrived_is_found_out_to_have_failed(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with proxied(postgres_server.port) as proxy:
        url = postgres_url.replace(str(postgres_server.port), str(proxy.port))
        async with opened(url) as store:
            proxy.word, proxy.passes_word = b"COMMIT", False
            with pytest.raises(StorageUnavailableError) as caught:
                await put(store, ("a",), 1)
            assert proxy.is_cut
            assert not caught.value.outcome_unknown
            assert await get(store, ("a",)) is None


async def test_a_commit_whose_fate_nobody_can_tell_is_said_to_be_unknown(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with proxied(postgres_server.port) as proxy:
        url = postgres_url.replace(str(postgres_server.port), str(proxy.port))
        async with opened(f"{url}&timeout=0.3") as store:
            proxy.word, proxy.is_final = b"COMMIT", True
            with pytest.raises(StorageUnavailableError) as caught:
                await put(store, ("a",), 1)
            assert caught.value.outcome_unknown
            proxy.is_final = False
            await put(store, ("b",), 1)


async def test_a_store_works_again_when_its_server_does(private_postgres_server: PostgresServer) -> None:
    server = private_postgres_server
    async with opened(server.url()) as store, store.changes("things") as wakes:
        await put(store, ("a",), 1)
        await anext(wakes)
        server.stop()
        with pytest.raises(StorageUnavailableError):
            await put(store, ("a",), 2)
        with pytest.raises(StorageUnavailableError):
            await get(store, ("a",))
        server.start()
        assert await get(store, ("a",)) == 1
        async with opened(server.url()) as other:
            await put(other, ("a",), 3)
        await anext(wakes)
        await put(store, ("a",), 4)
        assert await get(store, ("a",)) == 4


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53100", StorageFullError),
        ("25006", StorageReadOnlyError),
        ("42501", StorageReadOnlyError),
        ("55P03", StorageBusyError),
        ("57014", StorageBusyError),
        ("XX001", StorageDamagedError),
        ("XX002", StorageDamagedError),
        ("P0001", StorageError),
    ],
)
async def test_what_the_server_reports_becomes_the_error_that_fits_and_the_next_operation_works(
    postgres_server: PostgresServer, postgres_url: str, state: str, kind: type[StorageError]
) -> None:
    async with opened(postgres_url) as store:
        refuse(postgres_server, schema_of(postgres_url), state)
        with pytest.raises(kind) as caught:
            await put(store, ("bad",), "private")
        assert type(caught.value) is kind
        assert "private" not in str(caught.value)
        await put(store, ("good",), 1)
        assert await store.view(lambda tx: [key for key, _ in tx.scan("things")]) == [("good",)]


async def test_a_database_that_may_only_be_read_can_be_read(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await put(store, ("a",), 1)
    async with opened(f"{postgres_url}&options=-c%20default_transaction_read_only%3Don") as store:
        with pytest.raises(StorageReadOnlyError):
            await put(store, ("a",), 2)
        assert await get(store, ("a",)) == 1


@pytest.mark.parametrize(("configured", "used"), [("off", "on"), ("local", "local"), ("remote_write", "remote_write")])
def test_a_commit_is_durable_also_where_the_server_would_not_wait_for_it(
    postgres_url: str, configured: str, used: str
) -> None:
    address = read_address(f"{postgres_url}&options=-c%20synchronous_commit%3D{configured}")
    with dial(address) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchall() == [(used,)]


def refuse(server: PostgresServer, schema: str, state: str) -> None:
    """Make the server fail when a document is written whose key begins with 'bad'."""
    server.execute(
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$"
    )
    server.execute(
        f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.documents FOR EACH ROW "
        f"WHEN (substr(NEW.key, 2, 3) = 'bad') EXECUTE FUNCTION {schema}.refuse()"
    )
