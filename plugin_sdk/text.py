"""Puts what others wrote into texts for people and the model. Renders nothing itself."""

from __future__ import annotations

import os

__all__ = ["one_line", "shown"]


def one_line(text: str, most: int = 1_000) -> str:
    """Returns a text on one line and no longer than so many characters.

    So that a name or a description in a list cannot pretend to be more than one entry of it.
    """
    line = "".join(char for char in " ".join(text.split()) if char.isprintable())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shown(text: str | os.PathLike[str]) -> str:
    """Returns a path or a text on one line, whatever it consists of: what cannot be printed is escaped.

    So that a name that somebody else chose can neither pretend to be more than itself nor steer a terminal.
    """
    encodable = os.fspath(text).encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in encodable)
