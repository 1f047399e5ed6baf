"""Looks at everything a store keeps, and tells what is wrong and how large it is. Changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import quote

import psycopg

from plugin_sdk.storage import (
    InvalidKeyError,
    StorageDamagedError,
    StorageFacts,
    check_table,
    decode_document,
    decode_key,
    encode_key,
)
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connection import Connection, Row
from plugins_builtin.storage_postgres.faults import connection_lost, is_lost, meaning_of
from plugins_builtin.storage_postgres.pool import Pool
from plugins_builtin.storage_postgres.statements import Statements

R = TypeVar("R")

_PAGE = 500


def check_store(pool: Pool, address: Address, statements: Statements) -> list[str]:
    """Returns what is wrong, one sentence each.

    Raises:
        StorageError: The server failed.
    """

    def checked(connection: Connection) -> list[str]:
        problems = list(_index_problems(connection, statements))
        with connection.transaction():
            connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for row in _rows(connection, statements):
                problems += _problems_of(*row)
        return problems

    return _on_a_connection(pool, address, checked)


def facts_of(
    pool: Pool, address: Address, statements: Statements, *, layout: int, migrated_from: int | None
) -> StorageFacts:
    """Returns where the store is and how large.

    Raises:
        StorageError: The server failed.
    """

    def found(connection: Connection) -> StorageFacts:
        [(size,)] = connection.execute(statements.size).fetchall()
        told = connection.info
        place = f"postgresql://{quote(told.host, safe='')}:{told.port}/{quote(told.dbname, safe='')}"
        return StorageFacts(
            kind="postgresql",
            place=f"{place}?schema={address.schema}",
            schema=layout,
            bytes=int(size),
            migrated_from=migrated_from,
        )

    return _on_a_connection(pool, address, found)


def _on_a_connection(pool: Pool, address: Address, ask: Callable[[Connection], R]) -> R:
    while True:
        connection, was_used = pool.take()
        try:
            answer = ask(connection)
        except psycopg.Error as error:
            lost = is_lost(error, connection)
            connection.close()
            if not lost:
                raise meaning_of(error, address) from error
            if not was_used:
                raise connection_lost(address) from error
            pool.empty()  # it had died there; a new one is tried once
        except BaseException:
            connection.close()
            raise
        else:
            pool.give_back(connection)
            return answer


def _index_problems(connection: Connection, statements: Statements) -> Iterator[str]:
    """Asks amcheck, where somebody installed it and we may use it."""
    found = connection.execute(
        b"SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'amcheck'"
    ).fetchone()
    if found is None:
        return
    question = f'SELECT "{found[0]}".bt_index_check(\'"{statements.schema}".documents_pkey\'::regclass, true)'
    try:
        connection.execute(question.encode())
    except psycopg.errors.InsufficientPrivilege:
        return
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted):
        yield "The index of the documents does not fit them."


def _rows(connection: Connection, statements: Statements) -> Iterator[Row]:
    last: tuple[str, bytes] = ("", b"")
    while True:
        rows = connection.execute(statements.page, (*last, _PAGE), binary=True).fetchall()
        yield from rows
        if len(rows) < _PAGE:
            return
        last = rows[-1][0], rows[-1][1]


def _problems_of(table: str, key: bytes, body: str) -> Iterator[str]:
    shown_key = f"0x{key.hex()}"
    try:
        check_table(table)
    except InvalidKeyError:
        yield f"{table!r} is not the name of a table."
    with contextlib.suppress(ValueError):
        shown_key = repr(decode_key(key))
    if not _is_canonical(key):
        yield f"The key {shown_key} in '{table}' is not written as keys are."
    try:
        is_null = decode_document(body) is None
    except StorageDamagedError:
        yield f"The document {shown_key} in '{table}' is not JSON."
    else:
        if is_null:
            yield f"The document {shown_key} in '{table}' is null."


def _is_canonical(key: bytes) -> bool:
    try:
        return encode_key(decode_key(key)) == key
    except (ValueError, InvalidKeyError):
        return False
