"""Says what an error of psycopg means for a store. Repairs and retries nothing."""

from __future__ import annotations

import re

import psycopg
from psycopg import pq

from plugin_sdk.storage import (
    StorageBusyError,
    StorageConflictError,
    StorageDamagedError,
    StorageError,
    StorageFullError,
    StorageMissingError,
    StorageReadOnlyError,
    StorageUnavailableError,
    StorageUrlError,
)
from plugins_builtin.storage_postgres.address import Address
from plugins_builtin.storage_postgres.connection import Connection

# A unique violation is one too: two transactions inserted the same key, and one of them could not see the other.
_CONFLICTS = frozenset({"40001", "40P01", "23505"})
_ENDED_BY_SERVER = frozenset({"25P03", "57P01", "57P02", "57P03", "57P04", "57P05"})
_NO_DATABASE = re.compile(r'FATAL: +database "([^"]+)" does not exist')
_WRONG_OPTION = re.compile(
    r'invalid (integer value "[^"]*" for connection option "\w+"|\w+ value: ".*"|port number: ".*")'
)
_CHECK = "Run 'opencode-core storage check'."


def root_of(error: psycopg.Error) -> psycopg.Error:
    """Returns the error that ended a pipeline, where only the commands behind it were reported."""
    while isinstance(error, psycopg.errors.PipelineAborted) and isinstance(error.__context__, psycopg.Error):
        error = error.__context__
    return error


def is_conflict(error: psycopg.Error) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    return error.sqlstate in _CONFLICTS


def is_lost(error: psycopg.Error, connection: Connection) -> bool:
    """Whether the connection is gone."""
    return connection.closed or connection.pgconn.status == pq.ConnStatus.BAD or error.sqlstate in _ENDED_BY_SERVER


def not_connected(error: psycopg.Error, address: Address) -> StorageError:
    """Returns why there is no connection.

    A connection that failed has no SQLSTATE, only a text; one that is not understood is passed on as it is.
    """
    text = str(error)
    said = " ".join(address.scrubbed(text).split()) or type(error).__name__
    if missing := _NO_DATABASE.search(text):
        return StorageMissingError(
            f"There is no database '{missing[1]}' on the PostgreSQL server of '{address.url}'.",
            f"Create it with 'createdb {missing[1]}', or name another one in the URL.",
        )
    if isinstance(error, psycopg.ProgrammingError) or _WRONG_OPTION.search(text):
        return StorageUrlError(
            f"The storage URL '{address.url}' has an option that PostgreSQL does not accept: {_ended(said)}",
            "Correct it.",
        )
    if "FATAL: " in text:
        return StorageUnavailableError(
            f"The PostgreSQL server of '{address.url}' refused the connection: {_ended(said)}",
            "See that the URL names the right database, user and password, and that the server lets them in.",
        )
    return StorageUnavailableError(
        f"The PostgreSQL server of '{address.url}' cannot be reached: {_ended(said)}",
        "See that it runs, and that the URL names the right host and port.",
    )


def connection_lost(address: Address, *, outcome_unknown: bool = False) -> StorageUnavailableError:
    """Returns what a connection that ended in the middle of a transaction means."""
    if outcome_unknown:
        return StorageUnavailableError(
            f"The connection to '{address.url}' was lost during a commit, and the server cannot say if it succeeded.",
            "Read what is there before you write it again.",
            outcome_unknown=True,
        )
    return StorageUnavailableError(
        f"The connection to '{address.url}' was lost in the middle of a transaction, and nothing was written.",
        "Try again; a new connection is made by itself.",
    )


def meaning_of(error: psycopg.Error, address: Address) -> StorageError:
    """Returns what an error that the server reported means."""
    state = error.sqlstate or ""
    said = error.diag.message_primary or type(error).__name__
    if state in _CONFLICTS:
        return StorageConflictError(f"A transaction on '{address.url}' collided with another.", "Try again.")
    if state in ("53100", "53200"):
        what = "disk space" if state == "53100" else "memory"
        return StorageFullError(f"The PostgreSQL server of '{address.url}' has no {what} left.", "Make room there.")
    if state == "25006":
        return StorageReadOnlyError(
            f"The database of '{address.url}' is read-only.", "Name a server and a user that may write."
        )
    if state == "42501":
        return StorageReadOnlyError(
            f"The user of '{address.url}' may not do that: {_ended(said)}",
            f"Grant it all on the schema '{address.schema}'.",
        )
    if state in ("55P03", "57014"):
        return StorageBusyError(f"Somebody else held a lock in '{address.url}' for too long.", "Try again later.")
    if state in ("XX001", "XX002"):
        return StorageDamagedError(f"The database of '{address.url}' is damaged: {_ended(said)}", _CHECK)
    if state in ("3F000", "42P01", "42703"):
        return StorageDamagedError(f"A table of the store '{address.url}' is gone or changed: {_ended(said)}", _CHECK)
    if not state or state[:2] in ("08", "28", "3D") or state in _ENDED_BY_SERVER | {"53300"}:
        return not_connected(error, address)
    # What the server said may repeat what was stored, so only its kind is shown.
    return StorageError(f"The database of '{address.url}' failed: {type(error).__name__} ({state}).", _CHECK)


def _ended(said: str) -> str:
    """Returns a sentence of somebody else with one sign at its end."""
    return said if said.endswith(("?", "!")) else f"{said.rstrip('.')}."
