"""A check looks at every document; what is told of a store has no secret in it."""

import pytest

from plugins_builtin.storage_postgres import checking
from tests.storage_postgres.stores import opened, put, put_many, schema_of
from tests.support.postgres import PostgresServer


async def test_a_healthy_store_has_nothing_wrong_over_many_pages(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_PAGE", 3)
    async with opened(postgres_url) as store:
        for table in ("things", "others"):
            await put_many(store, [(number, "x") for number in range(7)], table=table)
        assert await store.check() == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (r"('Bad', '\x2061', '1')", "'Bad' is not the name of a table."),
        (r"('things', '\x99', '1')", "The key 0x99 in 'things' is not written as keys are."),
        (r"('things', '\x1500', '1')", "The key (0,) in 'things' is not written as keys are."),
        (r"('things', '\x', '1')", "The key () in 'things' is not written as keys are."),
        (r"('things', '\x206100', '{')", "The document ('a',) in 'things' is not JSON."),
        (r"('things', '\x206100', 'null')", "The document ('a',) in 'things' is null."),
    ],
)
async def test_what_is_wrong_is_named(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, row: str, problem: str
) -> None:
    monkeypatch.setattr(checking, "_PAGE", 3)
    async with opened(postgres_url) as store:
        await put_many(store, [(number, "x") for number in range(5)])
        postgres_server.execute(f"INSERT INTO {schema_of(postgres_url)}.documents VALUES {row}")
        assert problem in await store.check()


async def test_the_index_is_looked_at_where_the_server_can(postgres_server: PostgresServer) -> None:
    database = postgres_server.fresh_database()
    if not postgres_server.execute("SELECT FROM pg_available_extensions WHERE name = 'amcheck'"):
        pytest.skip("This PostgreSQL has no amcheck.")
    postgres_server.execute("CREATE EXTENSION amcheck", database=database)
    async with opened(postgres_server.url(database)) as store:
        await put(store, ("a",), 1)
        assert await store.check() == []
        # An index that says that it is complete, and is not.
        postgres_server.execute(
            "UPDATE pg_index SET indisready = false WHERE indexrelid = 'opencode.documents_pkey'::regclass",
            database=database,
        )
        postgres_server.execute(r"INSERT INTO opencode.documents VALUES ('things', '\x206200', '1')", database=database)
        postgres_server.execute(
            "UPDATE pg_index SET indisready = true WHERE indexrelid = 'opencode.documents_pkey'::regclass",
            database=database,
        )
        assert "The index of the documents does not fit them." in await store.check()
    postgres_server.execute(f"DROP DATABASE {database} WITH (FORCE)")


async def test_the_facts_name_the_place_and_no_password(postgres_server: PostgresServer, postgres_url: str) -> None:
    schema = schema_of(postgres_url)
    async with opened(postgres_server.url(password="Sesam", schema=schema)) as store:
        await put(store, ("a",), 1)
        facts = await store.facts()
    assert facts.kind == "postgresql"
    assert facts.place == f"postgresql://127.0.0.1:{postgres_server.port}/postgres?schema={schema}"
    assert facts.schema == 1
    assert facts.bytes is not None
    assert facts.bytes >= 8192
    assert "Sesam" not in repr(facts) + repr(store)
