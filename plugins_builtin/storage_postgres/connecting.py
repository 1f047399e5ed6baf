"""Opens connections that are fit for a store's work. Keeps none."""

from __future__ import annotations

import psycopg

from plugin_sdk.storage import StorageVersionError
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connection import Connection
from plugins_builtin.storage_postgres.faults import meaning_of, not_connected
from plugins_builtin.storage_postgres.patience import at_most
from plugins_builtin.storage_postgres.statements import SETTINGS, Statements


def dial(address: Address) -> Connection:
    """Returns a new connection.

    Raises:
        StorageUrlError: The URL has a wrong option.
        StorageMissingError: There is no such database.
        StorageUnavailableError: There is none to be had.
    """
    try:
        connection = psycopg.connect(autocommit=True, **address.parameters)  # type: ignore[arg-type]
    except psycopg.Error as error:
        raise not_connected(error, address) from None
    try:
        with at_most(connection, address.timeout):
            connection.execute(SETTINGS)
    except psycopg.Error as error:
        connection.close()
        raise meaning_of(error, address) from error
    return connection


def join(connection: Connection, address: Address, statements: Statements, *, layout: int) -> None:
    """Makes a connection one of those that use the store, so that nobody changes the layout under it.

    Raises:
        StorageVersionError: The layout changed since the store was opened.
        StorageError: The store cannot be used.
    """
    try:
        connection.execute(b"SELECT pg_advisory_lock_shared(%s)", (statements.use_lock,))
        row = connection.execute(statements.layout).fetchone()
    except psycopg.Error as error:
        raise meaning_of(error, address) from error
    found = int(row[0]) if row is not None else 0
    if found != layout:
        raise StorageVersionError(
            f"The store '{address.url}' was migrated to layout {found} while it was open with layout {layout}.",
            "Open it again with the newer version.",
            found=found,
            known=layout,
        )


def dial_and_join(address: Address, statements: Statements, *, layout: int) -> Connection:
    """Returns a new connection that uses the store.

    Raises:
        StorageError: There is none to be had.
    """
    connection = dial(address)
    try:
        join(connection, address, statements, layout=layout)
    except BaseException:
        connection.close()
        raise
    return connection
