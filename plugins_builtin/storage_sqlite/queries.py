"""Every statement that reads or writes documents, in one place. Runs none of them.

A document is found by the name of its table (``collection``) and its encoded key, which sorts as the key does.
"""

from __future__ import annotations

from typing import TypeAlias

from plugin_sdk.storage import Key, encode_key, key_range

Bounds: TypeAlias = tuple[str, bytes, bytes, int]
"""A collection, the first key, the key before which to stop, and how many at most; less than 0 for all."""

GET = "SELECT body FROM documents WHERE collection = ? AND key = ?"

PUT = "REPLACE INTO documents (collection, key, body) VALUES (?, ?, ?)"

DELETE = "DELETE FROM documents WHERE collection = ? AND key = ?"

SCAN = "SELECT key, body FROM documents WHERE collection = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?"

SCAN_BACK = "SELECT key, body FROM documents WHERE collection = ? AND key >= ? AND key < ? ORDER BY key DESC LIMIT ?"

# Jumps from one name to the next; DISTINCT would read every document.
COLLECTIONS = """
WITH RECURSIVE names (name) AS (
    SELECT min(collection) FROM documents
    UNION ALL
    SELECT (SELECT min(collection) FROM documents WHERE collection > name) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL
"""

SLICE = """
SELECT collection, key, body FROM documents WHERE (collection, key) > (?, ?) ORDER BY collection, key LIMIT ?
"""

INTEGRITY = "PRAGMA integrity_check"
DATA_VERSION = "PRAGMA data_version"
USER_VERSION = "PRAGMA user_version"

BEGIN_WRITING = "BEGIN IMMEDIATE"
BEGIN_READING = "BEGIN"
BEGIN_ALONE = "BEGIN EXCLUSIVE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT job"
RELEASE = "RELEASE job"
ROLLBACK_TO_SAVEPOINT = "ROLLBACK TO job"


def bounds(table: str, prefix: Key, *, after: Key | None, limit: int | None, reverse: bool) -> Bounds:
    """Returns what a scan asks for.

    Raises:
        InvalidKeyError: The prefix or the key to start behind is wrong.
    """
    low, high = key_range(prefix)
    if after is not None:
        behind = encode_key(after)
        if reverse:
            high = min(high, behind)
        else:
            low = max(low, behind + b"\x00")  # the smallest bytes that sort behind it
    return table, low, high, -1 if limit is None else limit
