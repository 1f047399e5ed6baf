"""What a transaction writes: documents put or removed, and the number of the layout. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from plugin_sdk.storage import Key, decode_key, encode_key
from plugins_builtin.storage_jsonfiles.names import VERSION_FILE, path_of_key

Overlay: TypeAlias = "dict[str, dict[bytes, Change]]"
"""Changes that are not in the files yet, by table and encoded key."""


@attrs.frozen
class Change:
    """One document written or removed.

    Attributes:
        table: Its table; empty for the number of the layout.
        encoded: Its key, in the bytes that sort as keys do.
        content: The bytes of its file; None when it is removed.
    """

    table: str
    encoded: bytes
    content: bytes | None

    @property
    def key(self) -> Key:
        """The document's key."""
        return decode_key(self.encoded)

    @property
    def path(self) -> tuple[str, ...]:
        """Where its file is, from the root of the store."""
        return path_of_key(self.table, self.key) if self.table else (VERSION_FILE,)


def put(table: str, key: Key, content: bytes) -> Change:
    """Returns the change that writes a document.

    Raises:
        InvalidKeyError: The key is not one.
    """
    return Change(table, encode_key(key), content)


def new_version(version: int) -> Change:
    """Returns the change that sets the number of the layout."""
    return Change("", b"", str(version).encode())


def lay_over(overlay: Overlay, changes: Iterable[Change]) -> Overlay:
    """Adds changes to an overlay, which then has the last one of each document, and returns it."""
    for change in changes:
        overlay.setdefault(change.table, {})[change.encoded] = change
    return overlay


def flattened(overlay: Overlay) -> Iterator[Change]:
    """Yields the changes, the number of the layout last."""
    for table in sorted(overlay, reverse=True):
        yield from overlay[table].values()
