"""Makes a store's tables, and brings older ones up to date. Touches nothing that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg

from plugin_sdk.storage import (
    StorageBusyError,
    StorageDamagedError,
    StorageError,
    StorageForeignError,
    StorageMissingError,
    StorageReadOnlyError,
    StorageVersionError,
)
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.faults import meaning_of
from plugins_builtin.storage_postgres.statements import Statements

Migration = Callable[[Connection, str], None]

MIGRATIONS: Sequence[Migration] = ()
"""What brings a schema from layout 1 to 2, from 2 to 3, and so on; the newest layout follows from their number."""

_OLDEST_SERVER = 130_000
_KIND = "opencode-core"


def prepare(
    connection: Connection,
    address: Address,
    statements: Statements,
    *,
    create: bool,
    migrate: bool,
    migrations: Sequence[Migration],
) -> int | None:
    """Sees to it that there is a store of the newest layout, and returns the older one that it found.

    Raises:
        StorageError: There is none, and nothing was changed.
    """
    try:
        _check_server(connection, address)
        if _find(connection, address) is None:
            if not create:
                raise StorageMissingError(f"There is no store at '{address.url}'.", "Check the URL, or create it.")
            _create(connection, address, statements, newest=1 + len(migrations))
        return _bring_up_to_date(connection, address, statements, migrations, migrate=migrate)
    except psycopg.Error as error:
        raise meaning_of(error, address) from error


def _check_server(connection: Connection, address: Address) -> None:
    if connection.info.server_version < _OLDEST_SERVER:
        raise StorageError(f"The PostgreSQL server of '{address.url}' is too old.", "Use PostgreSQL 13 or newer.")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StorageError(
            f"The database of '{address.url}' has the encoding '{encoding}', which cannot hold every text.",
            "Create one with: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
        )
    [(is_standby,)] = connection.execute(b"SELECT pg_is_in_recovery()").fetchall()
    if is_standby:
        raise StorageReadOnlyError(f"The server of '{address.url}' is a standby.", "Name the primary server.")


def _find(connection: Connection, address: Address) -> int | None:
    """Returns the layout version of the store in a schema; None when there is no store yet.

    Raises:
        StorageForeignError: The schema belongs to somebody else.
        StorageDamagedError: It is a store, but broken.
    """
    tables = _tables(connection, address.schema)
    if not tables:
        return None
    told: dict[str, str] = {}
    if tables.get("store") == ["name", "value"]:
        told = dict(connection.execute(f'SELECT name::text, value::text FROM "{address.schema}".store'.encode()))
    if told.get("kind") != _KIND:
        raise StorageForeignError(
            f"The schema '{address.schema}' of '{address.url}' has tables in it that are not a store's.",
            "Name another one with '?schema=...'.",
        )
    layout = told.get("layout", "")
    if not layout.isdecimal() or not int(layout) or "documents" not in tables:
        raise StorageDamagedError(
            f"The store '{address.url}' has lost its layout version or its documents.", "Restore it from a backup."
        )
    return int(layout)


def _tables(connection: Connection, schema: str) -> dict[str, list[str]]:
    """Returns everything that looks like a table, with its columns in their order."""
    rows = connection.execute(
        b"""SELECT c.relname::text, coalesce(array_agg(a.attname::text ORDER BY a.attnum)
                FILTER (WHERE a.attnum > 0 AND NOT a.attisdropped), '{}')
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE n.nspname = %s AND c.relkind NOT IN ('i', 'I', 't', 'c') GROUP BY c.relname""",
        (schema,),
    ).fetchall()
    return dict(rows)


def _create(connection: Connection, address: Address, statements: Statements, *, newest: int) -> None:
    with _locked(connection, statements):
        if _find(connection, address) is not None:
            return  # somebody else was faster
        is_there = connection.execute(b"SELECT FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone()
        if is_there is None:
            connection.execute(f'CREATE SCHEMA "{address.schema}"'.encode())
        connection.execute(_TABLES.format(schema=address.schema).encode())
        connection.execute(
            f"INSERT INTO \"{address.schema}\".store (name, value) VALUES ('kind', %s), ('layout', %s)".encode(),
            (_KIND, str(newest)),
        )


def _bring_up_to_date(
    connection: Connection, address: Address, statements: Statements, migrations: Sequence[Migration], *, migrate: bool
) -> int | None:
    found, newest = _find(connection, address), 1 + len(migrations)
    if found == newest or found is None:
        return None
    if found > newest or not migrate:
        remedy = "Use a newer version of it." if found > newest else "Run 'opencode-core storage migrate'."
        raise StorageVersionError(
            f"The store '{address.url}' has the layout {found}, and this version of opencode-core needs {newest}.",
            remedy,
            found=found,
            known=newest,
        )
    while _migrate_once(connection, address, statements, migrations):
        pass
    return found


def _migrate_once(
    connection: Connection, address: Address, statements: Statements, migrations: Sequence[Migration]
) -> bool:
    with _locked(connection, statements):
        layout = _find(connection, address)
        if layout is None or layout > len(migrations):
            return False  # done, perhaps by somebody else
        _keep_others_out(connection, address, statements)
        migrations[layout - 1](connection, address.schema)
        connection.execute(
            f"UPDATE \"{address.schema}\".store SET value = %s WHERE name = 'layout'".encode(), (str(layout + 1),)
        )
        return True


@contextmanager
def _locked(connection: Connection, statements: Statements) -> Iterator[None]:
    """One transaction at a time, in which each statement sees what was committed before it."""
    with connection.transaction():
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (statements.layout_lock,))
        yield


def _keep_others_out(connection: Connection, address: Address, statements: Statements) -> None:
    connection.execute(f"SET LOCAL lock_timeout = {max(1, round(address.timeout * 1000))}".encode())
    try:
        connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (statements.use_lock,))
    except psycopg.errors.LockNotAvailable as error:
        raise StorageBusyError(
            f"The store '{address.url}' cannot be migrated while others have it open.", "Close them, and try again."
        ) from error


_TABLES = """
CREATE TABLE "{schema}".store (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE "{schema}".documents (
    collection text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (collection, key)
)
"""
