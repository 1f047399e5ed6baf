"""Puts values, digests and times into lines that fit a terminal and in which it finds nothing to obey."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import click

from opencode_core.cli.text import one_line, shown, size
from opencode_core.context.told import Extent
from opencode_core.model.context import SnapshotEntry

NARROWEST = 40
WITHOUT_A_TERMINAL = 100
LEAST_OF_A_VALUE = 24
BEFORE_A_DIFFERENCE = 16
"""How much of what two values have in common is shown before the place where they begin to differ."""


def width() -> int:
    """Returns how wide lines may be: as wide as the terminal, or as the variable COLUMNS says."""
    return max(shutil.get_terminal_size((WITHOUT_A_TERMINAL, 24)).columns, NARROWEST)


def short_digest(digest: str) -> str:
    """Returns the beginning of a digest, as people compare it."""
    return one_line(digest[:12]) or "-"


def measured(extent: Extent) -> str:
    """Returns how large a text is."""
    return f"{size(extent.bytes)}, about {tokens(extent.tokens)}"


def tokens(count: int) -> str:
    """Returns a number of tokens as people read it."""
    return "1 token" if count == 1 else f"{count:,} tokens"


def moment(milliseconds: int) -> str:
    """Returns a time as the clock on the wall showed it; the number itself, if no calendar has it."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def compared(before: SnapshotEntry | None, after: SnapshotEntry | None, room: int) -> tuple[str, str]:
    """Returns two values in so much room each, from where they begin to differ; a dash for one that is not there."""
    if before is None or after is None:
        return value(before, room), value(after, room)
    old, new = _as_json(before), _as_json(after)
    start = 0
    if max(len(old), len(new)) > room:
        start = max(_first_difference(old, new) - BEFORE_A_DIFFERENCE, 0)
    return _cut(old, room, start), _cut(new, room, start)


def value(entry: SnapshotEntry | None, room: int) -> str:
    """Returns the value of a source in so much room; a dash when it is not there."""
    return "-" if entry is None else _cut(_as_json(entry), room)


def gist(text: str, room: int) -> str:
    """Returns how a text begins, on one line."""
    room = max(room, LEAST_OF_A_VALUE)
    begins = " ".join(text[: room * 4].split())
    escaped = shown(begins[: room + 1])
    is_whole = len(escaped) <= room and len(text) <= room * 4
    return escaped if is_whole else f"{escaped[: room - 1]}…"


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _as_json(entry: SnapshotEntry) -> str:
    return json.dumps(entry.value, ensure_ascii=False)


def _cut(text: str, room: int, start: int = 0) -> str:
    room = max(room, LEAST_OF_A_VALUE)
    escaped = ("…" if start else "") + shown(text[start : start + room])
    if start + room >= len(text) and len(escaped) <= room:
        return escaped
    tail = f"… ({size(len(text.encode('utf-8', 'surrogatepass')))})"
    return escaped[: room - len(tail)] + tail


def wrapped(cells: Iterable[str], *, indent: str, hanging: str, room: int, gap: str = "  ") -> Iterator[str]:
    """Puts cells beside one another, and on the next line what does not fit."""
    line, is_empty = indent, True
    for cell in cells:
        if not is_empty and len(click.unstyle(f"{line}{gap}{cell}")) > room:
            yield line
            line, is_empty = hanging, True
        line += cell if is_empty else f"{gap}{cell}"
        is_empty = False
    yield line


def texts(text: str, *, indent: str) -> Iterator[str]:
    """Yields a whole text, line by line."""
    return (f"{indent}{shown(line)}" if line else "" for line in text.splitlines())


def listed(words: Sequence[str]) -> str:
    """Returns names in quotes, with commas."""
    return ", ".join(f"'{one_line(word)}'" for word in words)
