"""The SQL of a store. Runs nothing.

The primary key serves every reading, forwards and backwards. Under SERIALIZABLE, PostgreSQL locks what a reading
passed over, so it must never pass over more than the keys that were asked for.
"""

from __future__ import annotations

import hashlib

import attrs

BEGIN = b"BEGIN ISOLATION LEVEL SERIALIZABLE"
BEGIN_READ_ONLY = b"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
COMMIT = b"COMMIT"
ROLLBACK = b"ROLLBACK"
NUMBER = b"SELECT pg_current_xact_id()::text, extract(epoch FROM now())::float8"
# A standby knows nothing for sure; it may be about to become the primary server.
STATUS = b"SELECT CASE WHEN pg_is_in_recovery() THEN 'in progress' ELSE pg_xact_status(%s::text::xid8) END"
NOTIFY = b"SELECT pg_notify(%s, %s)"
LOCK = b"SELECT pg_advisory_lock(%s)"
UNLOCK = b"SELECT pg_advisory_unlock(%s)"

SETTINGS = b"""
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan;
SET lock_timeout = '30s';
SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""


@attrs.frozen(kw_only=True)
class Statements:
    """The statements of the store in one schema, whose name needs no escaping.

    Attributes:
        layout_lock: The advisory lock of whoever makes or changes the layout.
        use_lock: The advisory lock that is shared by all who use the store.
        turn_lock: The advisory lock of those whose transactions collided.
        channel: Where commits are announced.
    """

    schema: str
    layout_lock: int
    use_lock: int
    turn_lock: int
    channel: str
    get: bytes
    scan: bytes
    scan_reverse: bytes
    tables: bytes
    put: bytes
    delete: bytes
    page: bytes
    size: bytes
    layout: bytes
    mark: bytes
    marked: bytes
    unmark: bytes
    sweep: bytes


def statements_for(schema: str) -> Statements:
    """Returns the statements of the store in a schema."""
    documents, store = f'"{schema}".documents', f'"{schema}".store'
    between = f"SELECT key, body FROM {documents} WHERE collection = %s AND key >= %b AND key < %b ORDER BY key"
    return Statements(
        schema=schema,
        layout_lock=_lock("layout", schema),
        use_lock=_lock("use", schema),
        turn_lock=_lock("turn", schema),
        channel=f"opencode_{_digest('channel', schema).hex()[:24]}",
        get=f"SELECT body FROM {documents} WHERE collection = %s AND key = %b".encode(),
        scan=f"{between} LIMIT %s".encode(),
        scan_reverse=f"{between} DESC LIMIT %s".encode(),
        tables=_tables(documents),
        put=f"""INSERT INTO {documents} (collection, key, body)
            SELECT * FROM unnest(%b::text[], %b::bytea[], %b::text[])
            ON CONFLICT (collection, key) DO UPDATE SET body = excluded.body""".encode(),
        delete=f"""DELETE FROM {documents} AS there USING unnest(%b::text[], %b::bytea[]) AS gone (collection, key)
            WHERE there.collection = gone.collection AND there.key = gone.key""".encode(),
        page=f"""SELECT collection, key, body FROM {documents} WHERE (collection, key) > (%s, %b)
            ORDER BY collection, key LIMIT %s""".encode(),
        size=f"SELECT pg_total_relation_size('{documents}') + pg_total_relation_size('{store}')".encode(),
        layout=f"SELECT value FROM {store} WHERE name = 'layout'".encode(),
        # An update would read, and so collide with whoever adds a row beside it; this does not.
        mark=f"""INSERT INTO {store} (name, value) VALUES (%s::text, {_moment("now()")} || ' ' || %s::text)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value""".encode(),
        marked=f"""SELECT (SELECT value FROM {store} WHERE name = %s::text),
            to_timestamp(%s::float8) < now() - interval '12 hours'""".encode(),
        unmark=f"DELETE FROM {store} WHERE starts_with(name, %s::text)".encode(),
        sweep=f"""DELETE FROM {store} WHERE name IN (
            SELECT name FROM {store} WHERE starts_with(name, 'commit:')
            AND value COLLATE "C" < {_moment("now() - interval '1 day'")} FOR UPDATE SKIP LOCKED)""".encode(),
    )


def _moment(time: str) -> str:
    """Returns what makes a text of a time, so that the texts of two times compare as they do."""
    return f"to_char(({time}) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"


def _tables(documents: str) -> bytes:
    """Hops from one table's first document to the next table's, instead of reading all."""
    return f"""WITH RECURSIVE found AS (
            (SELECT collection FROM {documents} ORDER BY collection LIMIT 1)
            UNION ALL
            SELECT (SELECT collection FROM {documents} WHERE collection > found.collection ORDER BY collection LIMIT 1)
            FROM found WHERE found.collection IS NOT NULL
        ) SELECT collection FROM found WHERE collection IS NOT NULL""".encode()


def _lock(purpose: str, schema: str) -> int:
    return int.from_bytes(_digest(purpose, schema)[:8], "big", signed=True)


def _digest(purpose: str, schema: str) -> bytes:
    return hashlib.sha256(f"opencode-core {purpose} {schema}".encode()).digest()
