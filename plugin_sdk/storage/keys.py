"""Turns keys into bytes that sort as the keys do, and back. Knows no store.

A number is one byte that says its sign and length, then its bytes, so small numbers are short. A text is a byte, its
UTF-8, and a zero; a zero inside becomes zero and 255, which sorts behind the end of a shorter text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opencode_core.errors import InvalidKeyError
from opencode_core.model.storage import Key

__all__ = ["check_key", "check_table", "decode_key", "encode_key", "key_range"]

LONGEST = 1_000

_TABLE = re.compile(r"[a-z][a-z0-9_]{0,62}")
_ZERO = 0x14
_TEXT = 0x20
_END = b"\x00"
_ESCAPED = b"\x00\xff"
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


@lru_cache(maxsize=256)
def check_table(table: str) -> str:
    """Returns a table's name unchanged.

    Raises:
        InvalidKeyError: It does not follow the grammar.
    """
    named: object = table
    if not isinstance(named, str) or _TABLE.fullmatch(named) is None:
        raise InvalidKeyError(
            f"{table!r} is not the name of a table.",
            "Use a lower-case letter, then up to 62 lower-case letters, digits and underscores.",
        )
    return table


def check_key(key: Key) -> Key:
    """Returns a key unchanged.

    Raises:
        InvalidKeyError: It is empty, too long, or has something other than texts and numbers of 64 bits in it.
    """
    encode_key(key)
    return key


def encode_key(key: Key) -> bytes:
    """Returns bytes that sort, among those of other keys, as the key does.

    Raises:
        InvalidKeyError: It is empty, too long, or has something other than texts and numbers of 64 bits in it.
    """
    if not key:
        raise InvalidKeyError("A key is empty.", "Give it at least one part.")
    return _encoded(key)


def key_range(prefix: Key) -> tuple[bytes, bytes]:
    """Returns the bounds of all keys that begin with a prefix: at least the first, less than the second.

    Raises:
        InvalidKeyError: The prefix cannot begin a key.
    """
    low = _encoded(prefix) if prefix else b""
    return low, low + b"\xff"


def decode_key(encoded: bytes) -> Key:
    """Returns the key that was encoded.

    Raises:
        ValueError: These are not the bytes of a key.
    """
    encoded = bytes(encoded)
    parts: list[str | int] = []
    at, size = 0, len(encoded)
    while at < size:
        tag = encoded[at]
        if tag == _TEXT:
            end = _end_of_text(encoded, at + 1)
            parts.append(_text(encoded[at + 1 : end]))
        elif _ZERO - 8 <= tag <= _ZERO + 8:
            end = at + abs(tag - _ZERO)
            parts.append(_number(encoded[at + 1 : end + 1], tag - _ZERO))
        else:
            raise ValueError(f"No part of a key begins with the byte {tag}.")
        at = end + 1
    return tuple(parts)


def _encoded(key: Key) -> bytes:
    if not isinstance(key, tuple):
        raise InvalidKeyError(f"{key!r} is not a key.", "Use a tuple of texts and numbers.")
    encoded = b""
    for part in key:  # written out, because every read and write comes by here
        if type(part) is str and part.isascii() and "\0" not in part:
            encoded += b"\x20" + part.encode() + _END
        elif type(part) is int and 0 <= part < 256:
            encoded += _SMALL[part]
        else:
            encoded += _encoded_part(part)
    if len(encoded) > LONGEST:
        raise InvalidKeyError(f"A key is {len(encoded):,} bytes long.", f"Keep keys below {LONGEST:,} bytes.")
    return encoded


def _encoded_part(part: str | int) -> bytes:
    if isinstance(part, str):
        try:
            return b"\x20" + str.encode(part).replace(_END, _ESCAPED) + _END
        except UnicodeEncodeError:
            raise InvalidKeyError("A text in a key is not valid Unicode.", "Leave out lone surrogates.") from None
    if type(part) is int and _SMALLEST <= part <= _LARGEST:
        size = (abs(part).bit_length() + 7) // 8
        if part < 0:
            return bytes((_ZERO - size,)) + ((1 << 8 * size) - 1 + part).to_bytes(size, "big")
        return bytes((_ZERO + size,)) + part.to_bytes(size, "big")
    raise InvalidKeyError(f"{part!r} cannot be part of a key.", "Use texts, and whole numbers of 64 bits.")


_SMALL = [_encoded_part(number) for number in range(256)]


def _text(encoded: bytes) -> str:
    return (encoded.replace(_ESCAPED, _END) if _END in encoded else encoded).decode()


def _number(digits: bytes, size: int) -> int:
    if len(digits) < abs(size):
        raise ValueError("The bytes of a key end too early.")
    number = int.from_bytes(digits, "big")
    return number if size >= 0 else number - (1 << -8 * size) + 1


def _end_of_text(encoded: bytes, at: int) -> int:
    while True:
        end = encoded.find(_END, at)
        if end < 0:
            raise ValueError("The bytes of a key end too early.")
        if not encoded.startswith(_ESCAPED, end):
            return end
        at = end + 2
