"""The law of the codec: what is stored of a value is JSON, and can be read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opencode_core.model.context import SnapshotEntry
from opencode_core.model.json import JSON, same
from plugin_sdk.storage import decode_document, encode_document
from plugin_sdk.testing.context.base import ContextLaws, decoded, encoded
from plugin_sdk.testing.storage.base import broken

LAW = "the codec"


class CodecLaws(ContextLaws):
    """The value that a later turn, or a later process, compares with is the one that was told."""

    async def test_what_is_stored_of_a_value_is_json(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            before = await subject.encoded()
        after = stored(before)
        if not same(before, after):
            raise broken(LAW, f"{before!r} was stored, and {after!r} came back")

    async def test_a_stored_value_is_read_back_as_the_same(self, directory: Path) -> None:
        async with self.loaded(directory) as subject:
            source, before = await subject.source(), await subject.encoded()
            again = encoded(source, decoded(source, stored(before)))
        if not same(before, again):
            raise broken(LAW, f"{before!r} was decoded, and encodes to {again!r}")


def stored(value: JSON) -> JSON:
    """Returns JSON as it comes out of a store."""
    try:
        document = decode_document(encode_document({"value": value}))
    except Exception as error:
        raise broken(LAW, f"what 'encode' returned cannot be stored: {error}") from error
    assert isinstance(document, Mapping)
    return document["value"]


def stored_snapshot(snapshot: Mapping[str, SnapshotEntry]) -> dict[str, SnapshotEntry]:
    """Returns a snapshot as it comes out of a store."""
    return {key: SnapshotEntry(value=stored(entry.value), removed=entry.removed) for key, entry in snapshot.items()}
