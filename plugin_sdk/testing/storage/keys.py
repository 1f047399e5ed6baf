"""Keys that are hard to keep in order, and a dictionary that answers as a store must. Tests nothing."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from opencode_core.model.json import JSON
from opencode_core.model.storage import Key

NUMBERS: tuple[int, ...] = (
    *(-(2**63), -(2**32) - 1, -(2**32), -65_537, -65_536, -257, -256, -255, -129, -128, -2, -1),
    *(0, 1, 2, 9, 10, 127, 128, 255, 256, 257, 65_535, 65_536, 2**31, 2**32, 2**53 + 1, 2**63 - 1),
)
TEXTS: tuple[str, ...] = (
    *("", "\x00", "\x00\x00", "\x00\xff", "\x01", " ", "!", "%", "%2F", ".", "..", "/", "-1", "0", "1", "10", "2"),
    *("A", "B", "Z", "_", "a", "a\x00", "a\x00b", "a\x01", "a ", "a/b", "a.json", "aa", "ab", "b", "con", "nul"),
    *("\\", "~", "\x7f", "\x80", "é", "e\u0301", "ß", "ss", "İ", "i", "漢", "\ud7ff", "\ue000", "\ufffd", "\uffff"),
    *("\U00010000", "\U0001f600", "\U0010ffff", "x" * 300, "x" * 301, "é" * 200, "long " * 180),
)
KEYS: tuple[Key, ...] = (
    *((number,) for number in NUMBERS),
    *((text,) for text in TEXTS),
    *((1, 0), (1, 1), (1, -1), (1, "1"), (1, "a"), (1, 1, 1), (-1, "a"), ("1", 1), ("1", "1")),
    *(("a", ""), ("a", "\x00"), ("a", -1), ("a", 0), ("a", 1), ("a", 10), ("a", 9), ("a", "a"), ("a", "a", "a")),
    *(("a", "b"), ("a", "b", 1), ("a", "b", 2, "c"), ("", ""), ("", "", 0), ("ab", "c"), ("A", "b"), ("é", "é")),
    *(("session", "ses_1", n) for n in range(12)),
    tuple(range(50)),
    ("x" * 300, "y" * 300, "z" * 300),
)
PREFIXES: tuple[Key, ...] = (
    *((), (1,), (-1,), ("1",), ("a",), ("a", "b"), ("a", "b", 1), ("",), ("", ""), ("ab",), ("é",), ("A",)),
    *(("session",), ("session", "ses_1"), ("session", "ses"), ("none",), (7,), ("a", ""), (0, 1)),
)
AFTERS: tuple[Key | None, ...] = (
    *(None, (-(2**63),), (1,), (1, 1), (5,), (2**63 - 1,), ("",), ("a",), ("a", "b"), ("a", "b", 1), ("a", "none")),
    *(("session", "ses_1", 4), ("session", "ses_1", 100), ("session",), ("\U0010ffff",), ("zzz",)),
)


def in_order(key: Key) -> tuple[tuple[int, str | int], ...]:
    """Returns what Python compares as the port compares keys."""
    return tuple((0 if isinstance(part, int) else 1, part) for part in key)


def shuffled(keys: tuple[Key, ...], seed: int) -> list[Key]:
    """Returns the keys in an order that is always the same for a seed."""
    mixed = list(keys)
    Random(seed).shuffle(mixed)
    return mixed


def scanned(
    documents: Mapping[Key, JSON], prefix: Key, after: Key | None, limit: int | None, reverse: bool
) -> list[tuple[Key, JSON]]:
    """Returns what a scan must yield."""
    found = sorted((key for key in documents if key[: len(prefix)] == prefix), key=in_order, reverse=reverse)
    if after is not None:
        behind = in_order(after)
        found = [key for key in found if (in_order(key) < behind if reverse else in_order(key) > behind)]
    return [(key, documents[key]) for key in found[:limit]]
