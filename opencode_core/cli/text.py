"""Puts what others wrote into lines that are safe to print. Knows nothing of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def one_line(text: object) -> str:
    """Returns a text as one line in which a terminal finds nothing to obey."""
    return shown(" ".join(str(text).split()))


def shown(text: str) -> str:
    """Escapes what a terminal would act on or could not show: plugins and projects choose their own names."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def columns(rows: Iterable[Sequence[str]], *, indent: str = "") -> list[str]:
    """Aligns rows of equal length, as wide as they need to be: nothing is cut off."""
    table = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def size(count: int) -> str:
    """Returns a number of bytes as people read it."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"


def counted(count: int, noun: str) -> str:
    """Returns ``1 plugin`` or ``2 plugins``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
