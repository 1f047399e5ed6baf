"""Turns the changes of a commit into the bytes of a journal record, and back. Knows no file.

A record is worth something only whole: its checksum covers its changes, its place and the run of the journal.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator

from plugins_builtin.storage_jsonfiles.changes import Change

_HEAD = struct.Struct(">4sQ16s")
_ENTRY = struct.Struct(">BHHI")
_BEGIN = b"\nRC\x1e"
_PUT, _REMOVE = 1, 2


def record_of(changes: Iterable[Change], *, run: bytes, at: int) -> bytes:
    """Returns a record.

    Args:
        changes: What it holds.
        run: Which run of the journal it belongs to.
        at: The offset at which it will stand.
    """
    payload = b"".join(_entry(change) for change in changes)
    return _HEAD.pack(_BEGIN, len(payload), _checksum(payload, run, at)) + payload


def changes_in(journal: bytes, *, run: bytes, start: int) -> tuple[list[Change], int]:
    """Returns the changes of all whole records from an offset on, and where the last one ends."""
    changes: list[Change] = []
    at = start
    while (payload := _payload(journal, run, at)) is not None:
        changes.extend(_changes(payload))
        at += _HEAD.size + len(payload)
    return changes, at


def has_record_behind(journal: bytes, *, run: bytes, at: int) -> bool:
    """Whether a whole record stands somewhere behind an offset at which there is none.

    The end of the journal may be torn, because it was being written when the machine stopped. Before a whole record
    nothing can be torn.
    """
    at = journal.find(_BEGIN, at + 1)
    while at >= 0:
        if _payload(journal, run, at) is not None:
            return True
        at = journal.find(_BEGIN, at + 1)
    return False


def _checksum(payload: bytes, run: bytes, at: int) -> bytes:
    return hashlib.blake2b(payload, digest_size=16, key=run + at.to_bytes(8, "big")).digest()


def _payload(journal: bytes, run: bytes, at: int) -> bytes | None:
    head = journal[at : at + _HEAD.size]
    if len(head) < _HEAD.size:
        return None
    begin, length, checksum = _HEAD.unpack(head)
    payload = journal[at + _HEAD.size : at + _HEAD.size + length]
    is_whole = begin == _BEGIN and len(payload) == length and _checksum(payload, run, at) == checksum
    return payload if is_whole else None


def _entry(change: Change) -> bytes:
    table, content = change.table.encode(), change.content
    kind, content = (_REMOVE, b"") if content is None else (_PUT, content)
    return _ENTRY.pack(kind, len(table), len(change.encoded), len(content)) + table + change.encoded + content


def _changes(payload: bytes) -> Iterator[Change]:
    at = 0
    while at < len(payload):
        kind, table, key, content = _ENTRY.unpack_from(payload, at)
        key_at = at + _ENTRY.size + table
        content_at = key_at + key
        yield Change(
            payload[at + _ENTRY.size : key_at].decode(),
            payload[key_at:content_at],
            payload[content_at : content_at + content] if kind == _PUT else None,
        )
        at = content_at + content
