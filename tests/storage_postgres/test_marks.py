"""A commit whose answer was lost succeeded exactly if its token is there, whoever has its number by now."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from plugin_sdk.storage import StorageUnavailableError
from plugins_builtin.storage_postgres import attempt as attempts
from plugins_builtin.storage_postgres.address import read_address
from plugins_builtin.storage_postgres.connecting import dial
from plugins_builtin.storage_postgres.marker import Mark, Marker
from plugins_builtin.storage_postgres.statements import BEGIN, COMMIT, NUMBER, statements_for
from tests.storage_postgres.proxy import proxied
from tests.storage_postgres.stores import get, opened, put, schema_of
from tests.support.postgres import PostgresServer


def marks_in(server: PostgresServer, url: str) -> list[tuple[Any, ...]]:
    """The marks of all open stores."""
    return server.execute(f"SELECT name, value FROM {schema_of(url)}.store WHERE name LIKE 'commit:%' ORDER BY 1")


async def test_a_commit_that_a_crash_undid_is_lost_also_when_its_number_is_used_again(
    private_postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, execute = private_postgres_server, attempts.Attempt._execute
    crashed: list[str] = []

    def crash(self: attempts.Attempt, statement: bytes, parameters: Sequence[object] = ()) -> Any:
        if statement == COMMIT and not self.is_read_only and not crashed:
            crashed.append(self.number)
            server.stop("immediate")
            server.start()
            while int(server.execute("SELECT pg_current_xact_id()::text")[0][0]) < int(self.number):
                pass
        return execute(self, statement, parameters)

    async with opened(server.url(schema="crash")) as store:
        await put(store, ("before",), 1)
        monkeypatch.setattr(attempts.Attempt, "_execute", crash)
        with pytest.raises(StorageUnavailableError) as caught:
            await put(store, ("a",), 1)
        assert crashed
        assert not caught.value.outcome_unknown
        assert await get(store, ("a",)) is None
        await put(store, ("a",), 2)
        assert await get(store, ("a",)) == 2


@pytest.mark.parametrize("number", ["of another", "of the future"])
async def test_the_number_of_a_transaction_proves_nothing(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    [(foreign,)] = postgres_server.execute("SELECT pg_current_xact_id()::text")
    claimed = int(foreign) + (10**9 if number == "of the future" else 0)
    with proxied(postgres_server.port) as proxy:
        url = postgres_url.replace(str(postgres_server.port), str(proxy.port))
        async with opened(url) as store:
            monkeypatch.setattr(attempts, "NUMBER", NUMBER + f", '{claimed}' AS claimed".encode())
            monkeypatch.setattr(attempts.Attempt, "_begun", begun_as_claimed)
            proxy.word, proxy.passes_word = b"COMMIT", False
            with pytest.raises(StorageUnavailableError) as caught:
                await put(store, ("a",), 1)
            assert not caught.value.outcome_unknown
            assert await get(store, ("a",)) is None


def begun_as_claimed(self: attempts.Attempt, number: Any) -> None:
    """Believe in another number than the server's."""
    self.has_answered = True
    if number is not None:
        [(_, self.begun, self.number)] = number.fetchall()


@pytest.fixture
def marker(postgres_url: str) -> Marker:
    """A marker that is patient for a moment only."""
    address = read_address(f"{postgres_url}&timeout=0.2")
    return Marker(address, statements_for(address.schema), "somebody")


def leave(connection: psycopg.Connection[Any], url: str, mark: Mark) -> tuple[str, float]:
    """Begin a transaction that leaves a mark; return its number and when it began."""
    connection.execute("BEGIN")
    connection.execute(statements_for(schema_of(url)).mark, (mark.name, mark.token))
    [(number, begun)] = connection.execute(NUMBER).fetchall()
    return number, begun


async def test_a_commit_that_goes_on_is_unknown_and_does_not_hold_up_the_next(
    postgres_url: str, marker: Marker
) -> None:
    async with opened(postgres_url):
        mark = marker.new_mark()
        with dial(read_address(postgres_url)) as connection:
            number, begun = leave(connection, postgres_url, mark)
            assert marker.fate_of(mark, number=number, begun=begun) == "unknown"
            assert marker.new_mark().name != mark.name
            connection.execute("COMMIT")
        assert marker.fate_of(mark, number=number, begun=begun) == "committed"


async def test_a_mark_that_may_have_been_swept_proves_nothing(postgres_url: str, marker: Marker) -> None:
    async with opened(postgres_url):
        mark = marker.new_mark()
        with dial(read_address(postgres_url)) as connection:
            number, begun = leave(connection, postgres_url, mark)
            connection.execute("ROLLBACK")
        assert marker.fate_of(mark, number=number, begun=begun) == "aborted"
        assert marker.fate_of(mark, number=number, begun=begun - 86_400) == "unknown"


async def test_an_open_store_has_one_mark_and_a_closed_one_none(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with opened(postgres_url) as store, opened(postgres_url) as other:
        await get(store, ("a",))
        assert marks_in(postgres_server, postgres_url) == []
        for number in range(3):
            await put(store, ("a",), number)
            await put(other, ("b",), number)
        assert len(marks_in(postgres_server, postgres_url)) == 2
    assert marks_in(postgres_server, postgres_url) == []


async def test_the_marks_of_the_dead_are_swept_after_a_day(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await put(store, ("a",), 1)
        [(name, value)] = marks_in(postgres_server, postgres_url)
        postgres_server.execute(
            f"INSERT INTO {schema_of(postgres_url)}.store SELECT 'commit:dead:' || hours, to_char((now() - hours * "
            "interval '1 hour') AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' x' "
            "FROM unnest(ARRAY[23, 25]) AS hours"
        )
        async with opened(postgres_url):
            left = marks_in(postgres_server, postgres_url)
        assert [mark[0] for mark in left] == sorted([name, "commit:dead:23"])
        assert (name, value) in left
        await put(store, ("a",), 2)


async def test_marks_of_different_stores_do_not_collide(postgres_url: str) -> None:
    address, statements = read_address(postgres_url), statements_for(schema_of(postgres_url))
    async with opened(postgres_url):
        with dial(address) as one, dial(address) as two:
            for token in ("added", "changed"):
                for connection in (one, two):
                    connection.execute(BEGIN)
                    connection.execute("SELECT pg_current_xact_id()")  # the snapshot
                one.execute(statements.mark, ("commit:one:0", token))
                two.execute(statements.mark, ("commit:two:0", token))
                one.execute(COMMIT)
                two.execute(COMMIT)
            kept = one.execute(f"SELECT name, right(value, 7) FROM {address.schema}.store".encode()).fetchall()
        assert {("commit:one:0", "changed"), ("commit:two:0", "changed")} <= set(kept)
