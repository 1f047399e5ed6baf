"""A URL says where a store is; what is wrong with one is told without its password."""

import re
import traceback

import pytest

from plugin_sdk.storage import StorageMissingError, StorageUnavailableError, StorageUrlError
from plugins_builtin import storage_postgres
from plugins_builtin.storage_postgres.address import read_address
from plugins_builtin.storage_postgres.opening import open_store
from tests.storage_postgres.stores import get, opened, put
from tests.support.postgres import PostgresServer

SECRET = "Sesam"


def test_the_stores_own_switches_do_not_reach_libpq() -> None:
    address = read_address("postgresql://me@there:1/db?schema=mine&pool=3&timeout=4&sslmode=disable")
    assert (address.schema, address.pool, address.timeout) == ("mine", 3, 4.0)
    assert address.parameters["sslmode"] == "disable"
    assert address.parameters["connect_timeout"] == 4
    assert not {"schema", "pool", "timeout"} & set(address.parameters)


def test_an_escaped_password_arrives_unescaped() -> None:
    assert read_address("postgresql://me:p%40s%2Fs@there/db").parameters["password"] == "p@s/s"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:{}@there/db?schema=Mine",
        "postgresql://me:{}@there/db?schema=pg_mine",
        "postgresql://me:{}@there/db?schema=a&schema=b",
        "postgresql://me:{}@there/db?pool=1",
        "postgresql://me:{}@there/db?pool=many",
        "postgresql://me:{}@there/db?timeout=0",
        "postgresql://me:{}@there/db?sslmoed=disable",
        "postgresql://me:{}@there:port/db",
        "postgresql://me:a@{}@there/db",
        "postgresql://me:{}/b@there/db",
        "postgresql://me:a/{}@there/db",
        "postgresql://me:1/{}@there/db",
        "postgresql://me:%zz{}@there/db",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StorageUrlError) as caught:
        read_address(url.format(SECRET))
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


async def test_a_wrong_password_is_told_and_never_shown(postgres_server: PostgresServer) -> None:
    postgres_server.execute(
        "DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; EXCEPTION WHEN OTHERS THEN NULL; END $$"
    )
    with pytest.raises(StorageUnavailableError, match="refused the connection") as caught:
        await open_store(postgres_server.url(user="locked", password=SECRET))
    assert "locked" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


@pytest.mark.parametrize(
    ("place", "named"),
    [("127.0.0.1:1/postgres", "127.0.0.1"), ("nowhere.invalid/postgres", "nowhere")],
    ids=["port", "host"],
)
async def test_a_wrong_place_is_named(place: str, named: str) -> None:
    with pytest.raises(StorageUnavailableError, match=f"{named}.* cannot be reached") as caught:
        await open_store(f"postgresql://opencode:{SECRET}@{place}")
    assert not caught.value.outcome_unknown
    assert not re.search(r"[.?!][.?!]", caught.value.problem)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


async def test_a_database_that_does_not_exist_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(StorageMissingError, match=r"There is no database 'none'.*'createdb none'") as caught:
        await open_store(postgres_server.url("none", password=SECRET))
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("sslmode=banana", 'sslmode value: "banana"'),
        ("keepalives=banana", '"keepalives"'),
        ("connect_timeout=banana", "connect_timeout"),
    ],
)
async def test_a_wrong_option_of_libpq_is_named(postgres_server: PostgresServer, option: str, said: str) -> None:
    with pytest.raises(StorageUrlError, match=said) as caught:
        await open_store(f"{postgres_server.url(password=SECRET)}?{option}")
    assert "reached" not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


async def test_the_short_spelling_of_the_scheme_names_the_same_store(postgres_url: str) -> None:
    offered = storage_postgres.opencode_storage_backends()
    async with opened(postgres_url) as store:
        await put(store, ("a",), 1)
    short = await offered["postgres"](postgres_url.replace("postgresql://", "postgres://"), create=False)
    try:
        assert await get(short, ("a",)) == 1
    finally:
        await short.aclose()


def test_a_machine_that_vanished_is_noticed_unless_the_url_says_otherwise() -> None:
    assert read_address("postgresql://me@there/db").parameters["tcp_user_timeout"] == 30_000
    chosen = read_address("postgresql://me@there/db?tcp_user_timeout=5&keepalives_idle=7").parameters
    assert (chosen["tcp_user_timeout"], chosen["keepalives_idle"]) == ("5", "7")
