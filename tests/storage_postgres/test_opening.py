"""A store is made once, by whoever comes first, and nothing that is not one is touched."""

import sys

import anyio
import pytest

from plugin_sdk.storage import (
    StorageBusyError,
    StorageDamagedError,
    StorageError,
    StorageForeignError,
    StorageMissingError,
    StorageReadOnlyError,
    StorageVersionError,
)
from plugins_builtin.storage_postgres import open_store as builtin_open_store
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.opening import open_store
from tests.storage_postgres.stores import get, named, opened, put, schema_of
from tests.support.postgres import PostgresServer


def everything_in(server: PostgresServer, url: str) -> list[tuple]:
    """What is in a schema: its tables, and the rows of its own description."""
    schema = schema_of(url)
    tables = server.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' ORDER BY 1")
    rows = server.execute(f"SELECT * FROM {schema}.store ORDER BY 1") if ("store",) in tables else []
    return tables + rows


def add_notes(connection: Connection, schema: str) -> None:
    """A migration to layout 2."""
    connection.execute(f"CREATE TABLE {schema}.notes (note text)".encode())


async def test_many_who_make_the_same_store_at_once_all_get_it(postgres_url: str) -> None:
    async def use(number: int) -> None:
        async with opened(postgres_url) as store:
            await put(store, (number,), number)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(use, number)
    async with opened(postgres_url, create=False) as store:
        assert await store.view(lambda tx: [document for _, document in tx.scan("things")]) == list(range(6))


async def test_nothing_is_made_when_nothing_should_be(postgres_server: PostgresServer, postgres_url: str) -> None:
    with pytest.raises(StorageMissingError):
        await open_store(postgres_url, create=False)
    assert not postgres_server.execute(f"SELECT FROM pg_namespace WHERE nspname = '{schema_of(postgres_url)}'")


async def test_a_store_is_made_in_an_empty_schema_that_somebody_prepared(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    postgres_server.execute(f"CREATE SCHEMA {schema_of(postgres_url)}")
    async with opened(postgres_url) as store:
        await put(store, ("a",), 1)


@pytest.mark.parametrize(
    "table",
    [
        "people (name text)",
        "documents (body text)",
        "store (name text, value text)",
        "store AS SELECT 'layout' AS name, '1' AS value",
    ],
)
async def test_a_schema_with_the_tables_of_others_is_left_alone(
    postgres_server: PostgresServer, postgres_url: str, table: str
) -> None:
    schema = schema_of(postgres_url)
    postgres_server.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table}")
    before = everything_in(postgres_server, postgres_url)
    with pytest.raises(StorageForeignError, match=schema):
        await open_store(postgres_url)
    assert everything_in(postgres_server, postgres_url) == before


async def test_a_newer_store_is_left_alone(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url, migrations=[add_notes]):
        pass
    before = everything_in(postgres_server, postgres_url)
    with pytest.raises(StorageVersionError) as caught:
        await open_store(postgres_url)
    assert (caught.value.found, caught.value.known) == (2, 1)
    assert everything_in(postgres_server, postgres_url) == before


async def test_an_older_store_is_migrated_only_when_asked(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await put(store, ("a",), "kept")
    before = everything_in(postgres_server, postgres_url)
    with pytest.raises(StorageVersionError):
        await open_store(postgres_url, migrate=False, migrations=[add_notes])
    assert everything_in(postgres_server, postgres_url) == before
    async with opened(postgres_url, migrations=[add_notes]) as store:
        facts = await store.facts()
        assert (facts.schema, facts.migrated_from) == (2, 1)
        assert await get(store, ("a",)) == "kept"
    assert ("notes",) in everything_in(postgres_server, postgres_url)


async def test_a_migration_that_fails_changes_nothing(postgres_server: PostgresServer, postgres_url: str) -> None:
    def fail(connection: Connection, schema: str) -> None:
        add_notes(connection, schema)
        raise ZeroDivisionError

    async with opened(postgres_url):
        pass
    before = everything_in(postgres_server, postgres_url)
    with pytest.raises(ZeroDivisionError):
        await open_store(postgres_url, migrations=[fail])
    assert everything_in(postgres_server, postgres_url) == before


async def test_two_who_migrate_at_once_do_it_once(postgres_url: str) -> None:
    done = []

    def migration(connection: Connection, schema: str) -> None:
        done.append(1)
        add_notes(connection, schema)

    async def use() -> None:
        async with opened(postgres_url, migrations=[migration]):
            pass

    async with opened(postgres_url):
        pass
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        tasks.start_soon(use)
    assert done == [1]


async def test_a_store_that_others_use_is_not_migrated(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        with pytest.raises(StorageBusyError, match="others have it open"):
            await open_store(f"{postgres_url}&timeout=0.2", migrations=[add_notes])
        await put(store, ("a",), 1)


async def test_a_store_that_was_migrated_while_we_were_cut_off_is_not_used_any_more(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url, ours = named(postgres_url)
    async with opened(url) as store:
        postgres_server.kill_backends(where=ours)
        async with opened(postgres_url, migrations=[add_notes]):
            with pytest.raises(StorageVersionError):
                await put(store, ("a",), 1)


async def test_a_store_without_its_documents_is_damaged(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url):
        pass
    postgres_server.execute(f"DROP TABLE {schema_of(postgres_url)}.documents")
    with pytest.raises(StorageDamagedError):
        await open_store(postgres_url)


async def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: PostgresServer) -> None:
    database = postgres_server.fresh_database(options="ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(StorageError, match="'SQL_ASCII'"):
        await open_store(postgres_server.url(database))
    postgres_server.execute(f"DROP DATABASE {database}")


async def test_a_user_who_may_not_make_a_schema_is_told_so(postgres_server: PostgresServer, postgres_url: str) -> None:
    role = f"guest_{schema_of(postgres_url)}"
    postgres_server.execute(f"CREATE ROLE {role} LOGIN")
    with pytest.raises(StorageReadOnlyError, match="may not"):
        await open_store(postgres_server.url(user=role, schema=schema_of(postgres_url)))
    postgres_server.execute(f"DROP ROLE {role}")


async def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"pip install 'opencode-core\[postgres\]'"):
        await builtin_open_store("postgresql://localhost/x")
