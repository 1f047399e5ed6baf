"""Puts what others wrote into texts for the model. Renders nothing itself."""

from __future__ import annotations

__all__ = ["one_line"]


def one_line(text: str, most: int = 1_000) -> str:
    """Returns a text on one line and no longer than so many characters.

    So that a name or a description in a list cannot pretend to be more than one entry of it.
    """
    line = "".join(char for char in " ".join(text.split()) if char.isprintable())
    return line if len(line) <= most else f"{line[: most - 1]}…"
