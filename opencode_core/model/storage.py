"""What a key of a stored document is, and what can be told about an open store. Opens nothing."""

from __future__ import annotations

from typing import TypeAlias

import attrs

Key: TypeAlias = tuple[str | int, ...]
"""A key: texts and whole numbers, compared part by part; numbers sort before texts, texts by code point."""


@attrs.frozen(kw_only=True)
class StorageFacts:
    """What a person may want to know about an open store.

    Attributes:
        kind: The backend, such as ``sqlite``.
        place: Where the store is, without any secret: a path, a server and a database.
        schema: The version of the backend's own layout.
        bytes: What the store takes up, with its indices, journals and free space; None when that is not known.
        backup: Where the copy is that was made before this opening migrated the store; None when none was made.
        migrated_from: The layout version that this opening found and migrated; None when it was current.
    """

    kind: str
    place: str
    schema: int
    bytes: int | None = None
    backup: str | None = None
    migrated_from: int | None = None
